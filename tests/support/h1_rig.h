// One HTTP/1 session over a memory transport with a raw peer, in either role.
#pragma once

#include "h1/h1_session.h"
#include "support/session_rig.h"

namespace twp::test {

using ServerRig = ServerSideRig<&make_h1_server>;
using ClientRig = ClientSideRig<&make_h1_client>;

}  // namespace twp::test
