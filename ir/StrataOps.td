//===- StrataOps.td - all ops ---------------------------------------------===//

include "ir/StrataExpertOps.td"
include "ir/StrataPlannedOps.td"
include "ir/StrataRecurrentOps.td"
