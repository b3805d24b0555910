#include "runtime/chat/HiddenNames.h"

#include <map>
#include <set>

namespace strata::chat {
namespace {

/// What a scope knows of a name from its beginning.
enum class Meaning : uint8_t {
  Variable,  ///< What the variables have.
  Outer,     ///< What the scope around it has.
  Hidden,    ///< Nothing: it is set before it is read.
  Parameter, ///< A loop's target, a macro's parameter.
};

class Names {
public:
  explicit Names(const Names *outer) : outer_(outer) {}

  /// A branch that goes on from here; it holds only what it adds.
  Names branch() const {
    Names names(outer_);
    names.before_ = this;
    return names;
  }

  void load(const std::string &name) {
    if (!isKnown(name))
      meanings_.emplace(name, Meaning::Variable);
  }
  void store(const std::string &name) {
    stored_.insert(name);
    if (!isKnownHere(name))
      meanings_.emplace(name, meaningOutside(name, Meaning::Hidden));
  }
  void declare(const std::string &name) {
    stored_.insert(name);
    meanings_.insert_or_assign(name, Meaning::Parameter);
  }

  /// Goes on behind branches of this: what only some of them set keeps its meaning from outside.
  void join(const std::vector<Names> &branches) {
    std::map<std::string, size_t> count;
    for (const Names &branch : branches)
      for (const std::string &name : branch.stored_)
        if (!isStored(name))
          ++count[name];
    for (const Names &branch : branches) {
      for (const auto &[name, meaning] : branch.meanings_)
        meanings_.insert_or_assign(name, meaning);
      stored_.insert(branch.stored_.begin(), branch.stored_.end());
    }
    for (const auto &[name, branchesThatStore] : count)
      if (branchesThatStore < branches.size())
        meanings_.insert_or_assign(name, meaningOutside(name, Meaning::Variable));
  }

  std::vector<std::string> hidden() const {
    std::vector<std::string> names;
    for (const auto &[name, meaning] : meanings_)
      if (meaning == Meaning::Hidden)
        names.push_back(name);
    return names;
  }

private:
  bool isStored(const std::string &name) const {
    return stored_.contains(name) || (before_ && before_->isStored(name));
  }
  bool isKnownHere(const std::string &name) const {
    return meanings_.contains(name) || (before_ && before_->isKnownHere(name));
  }
  bool isKnown(const std::string &name) const {
    return isKnownHere(name) || (outer_ && outer_->isKnown(name));
  }
  Meaning meaningOutside(const std::string &name, Meaning otherwise) const {
    return outer_ && outer_->isKnown(name) ? Meaning::Outer : otherwise;
  }

  const Names *outer_;
  const Names *before_ = nullptr;
  std::map<std::string, Meaning> meanings_;
  std::set<std::string> stored_;
};

/// Every name that an expression reads.
struct ReadNames {
  Names &names;

  void operator()(const ExpressionPtr &expression) const {
    if (expression)
      std::visit(*this, expression->node);
  }
  void operator()(const Arguments &arguments) const {
    for (const ExpressionPtr &argument : arguments.positional)
      (*this)(argument);
    for (const auto &[name, argument] : arguments.keywords)
      (*this)(argument);
    (*this)(arguments.starred);
    (*this)(arguments.doubleStarred);
  }
  void operator()(const Literal &) const {}
  void operator()(const NameUse &node) const { names.load(node.name); }
  void operator()(const ListDisplay &node) const {
    for (const ExpressionPtr &item : node.items)
      (*this)(item);
  }
  void operator()(const DictDisplay &node) const {
    for (const auto &[key, value] : node.entries) {
      (*this)(key);
      (*this)(value);
    }
  }
  void operator()(const Attribute &node) const { (*this)(node.object); }
  void operator()(const Subscript &node) const {
    (*this)(node.object);
    (*this)(node.index);
  }
  void operator()(const Slice &node) const {
    for (const ExpressionPtr *part : {&node.object, &node.begin, &node.end, &node.step})
      (*this)(*part);
  }
  void operator()(const Call &node) const {
    (*this)(node.callee);
    (*this)(node.arguments);
  }
  void operator()(const FilterUse &node) const {
    (*this)(node.input);
    (*this)(node.arguments);
  }
  void operator()(const TestUse &node) const {
    (*this)(node.input);
    (*this)(node.arguments);
  }
  void operator()(const Unary &node) const { (*this)(node.operand); }
  void operator()(const Binary &node) const {
    (*this)(node.left);
    (*this)(node.right);
  }
  void operator()(const Logical &node) const {
    (*this)(node.left);
    (*this)(node.right);
  }
  void operator()(const Compare &node) const {
    (*this)(node.first);
    for (const auto &[comparison, operand] : node.rest)
      (*this)(operand);
  }
  void operator()(const Conditional &node) const {
    (*this)(node.test);
    (*this)(node.then);
    (*this)(node.otherwise);
  }
  void operator()(const Concatenation &node) const {
    for (const ExpressionPtr &part : node.parts)
      (*this)(part);
  }
};

void setTarget(const Target &target, Names &names) {
  if (!target.attribute.empty())
    return names.load(target.name);
  if (!target.isTuple)
    return names.store(target.name);
  for (const Target &part : target.parts)
    setTarget(part, names);
}

void declareTarget(const Target &target, Names &names) {
  if (!target.isTuple)
    return names.declare(target.name);
  for (const Target &part : target.parts)
    declareTarget(part, names);
}

/// What statements mention in their own scope; bodies with a scope of their own are left out.
struct Mention {
  Names &names;

  void all(const Statements &statements) const {
    for (const Statement &statement : statements)
      std::visit(*this, *statement.node);
  }
  void read(const ExpressionPtr &expression) const { ReadNames{names}(expression); }

  void operator()(const Output &node) const { read(node.value); }
  void operator()(const Assignment &node) const {
    read(node.value);
    setTarget(node.target, names);
  }
  void operator()(const BlockAssignment &node) const { setTarget(node.target, names); }
  void operator()(const If &node) const {
    // `elif` is an `if` of its own, and the second of three branches.
    read(node.branches[0].first);
    std::vector<Names> parts(3, names.branch());
    Mention{parts[0]}.all(node.branches[0].second);
    for (size_t i = 1; i < node.branches.size(); ++i) {
      Mention{parts[1]}.read(node.branches[i].first);
      std::vector<Names> inner(3, parts[1].branch());
      Mention{inner[0]}.all(node.branches[i].second);
      parts[1].join(inner);
    }
    Mention{parts[2]}.all(node.otherwise);
    names.join(parts);
  }
  void operator()(const For &node) const { read(node.items); }
  void operator()(const MacroDefinition &node) const { names.store(node.name); }
  void operator()(const CallBlock &node) const { read(node.call); }
  void operator()(const FilterBlock &node) const { read(node.filters); }
  void operator()(const With &node) const {
    for (const auto &[target, value] : node.bindings)
      read(value);
  }
  void operator()(const Generation &) const {}
  void operator()(const LoopControl &) const {}
};

void findInBody(Body &body, Names names);

/// The bodies inside statements of the scope of `names`, which knows all that is mentioned in it.
struct FindInside {
  const Names &names;

  void all(Statements &statements) const {
    for (Statement &statement : statements)
      std::visit(*this, *statement.node);
  }
  template <class Node> void operator()(Node &) const {}
  void operator()(BlockAssignment &node) const { findInBody(node.body, Names(&names)); }
  void operator()(If &node) const {
    for (auto &[test, body] : node.branches)
      all(body);
    all(node.otherwise);
  }
  void operator()(For &node) const {
    Names loop(&names);
    loop.declare("loop");
    declareTarget(node.target, loop);
    findInBody(node.body, std::move(loop));
    findInBody(node.otherwise, Names(&names));
  }
  void operator()(MacroDefinition &node) const {
    Names macro(&names);
    for (const Parameter &parameter : node.parameters)
      macro.declare(parameter.name);
    for (const Parameter &parameter : node.parameters)
      ReadNames{macro}(parameter.standard);
    findInBody(node.body, std::move(macro));
  }
  void operator()(CallBlock &node) const { (*this)(node.caller); }
  void operator()(FilterBlock &node) const { findInBody(node.body, Names(&names)); }
  void operator()(With &node) const {
    Names with(&names);
    for (const auto &[target, value] : node.bindings)
      declareTarget(target, with);
    findInBody(node.body, std::move(with));
  }
  void operator()(Generation &node) const { findInBody(node.body, Names(&names)); }
};

/// `names`: what the body's scope has before its first statement.
void findInBody(Body &body, Names names) {
  Mention{names}.all(body.statements);
  body.hiddenNames = names.hidden();
  FindInside{names}.all(body.statements);
}

} // namespace

void findHiddenNames(Tree &tree) { findInBody(tree.body, Names(nullptr)); }

} // namespace strata::chat
