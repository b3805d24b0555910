//===- StrataOps.td - all ops ---------------------------------------------===//

include "ir/StrataPlannedOps.td"
