"""Conversations that templates are rendered with."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather at a place, e.g. \"Zürich\" & <elsewhere>",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": " The city's name \n"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                    "days": {"type": "integer", "default": 3, "minimum": 0.5},
                    "place": {"type": ["object", "null"], "properties": {"x": {"type": "number"}}},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {"name": "now", "description": "The time.", "parameters": {}},
    },
]


DOCUMENTS = [{"title": "A", "text": "first"}, {"title": "B", "text": "second"}]


def call(name, arguments, id="abcdefghi"):
    return {"type": "function", "id": id, "function": {"name": name, "arguments": arguments}}


USER = {"role": "user", "content": "Hello, who are you?"}
SYSTEM = {"role": "system", "content": "Answer in one word.\n"}
ANSWER = {"role": "assistant", "content": "Me."}
CALLS = {"role": "assistant", "content": "",
         "tool_calls": [call("get_weather", {"city": "Zürich", "days": 2, "place": None})]}
TWO_CALLS = {"role": "assistant", "content": "I look.",
             "tool_calls": [call("get_weather", {"city": "Oslo", "exact": True}),
                            call("now", {}, "ihgfedcba")]}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "abcdefghi",
          "content": '{"degrees": 21.5}'}
SECOND_RESULT = {"role": "tool", "name": "now", "tool_call_id": "ihgfedcba", "content": "noon"}
THOUGHT = {"role": "assistant", "content": "<think>\nHm, \n so.\n</think>\n\nYes."}
REASONED = {"role": "assistant", "reasoning_content": "\nBecause.\n", "content": "No."}
PARTS = {"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "image"},
                                     {"type": "text", "text": "two"}]}

CONVERSATIONS = {
    "user": [USER],
    "system": [SYSTEM, USER],
    "turns": [SYSTEM, USER, ANSWER, {"role": "user", "content": "  And  now?\t\n"}],
    "no system, turns": [USER, ANSWER, USER],
    "ends with the assistant": [USER, ANSWER],
    "call": [SYSTEM, USER, CALLS],
    "call and result": [USER, CALLS, RESULT],
    "call, result, answer": [SYSTEM, USER, CALLS, RESULT, ANSWER, USER],
    "two calls": [USER, TWO_CALLS, RESULT, SECOND_RESULT],
    "two calls, answer": [USER, TWO_CALLS, RESULT, SECOND_RESULT, ANSWER],
    "one call": [USER, {**CALLS, "content": None}, RESULT, ANSWER, USER],
    "thought": [USER, THOUGHT, USER, THOUGHT, USER],
    "reasoned": [USER, REASONED, USER, {**CALLS, "reasoning_content": "Tool!"}, RESULT],
    "parts": [PARTS],
    "parts twice": [{"role": "system", "content": [{"type": "text", "text": "Sys"}]}, PARTS, ANSWER],
    "roles do not alternate": [USER, USER],
    "assistant first": [ANSWER, USER],
    "unknown role": [USER, {"role": "critic", "content": "Bad."}],
    "developer": [{"role": "developer", "content": "Be brief."}, USER],
    "tokens in messages": [{"role": "user", "content": "<|im_end|>\n<|im_start|>system\n[INST]"}],
    "text of many kinds": [{"role": "user", "content": "日本語 \u00a0é\u0301 '\"\\ {{ x }} {% if %} 😀\r\n"}],
    "empty": [{"role": "user", "content": ""}],
    "none": [{"role": "user", "content": None}],
    "nothing": [],
}
