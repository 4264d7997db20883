"""Any connector as an agent of the Agent Client Protocol, for editors and other clients that speak it.

Written on our own JSON-RPC and not on the package `agent-client-protocol`: that one drops lines it cannot read without
an answer, ends at a line that is JSON but no object, and runs its handlers outside our task groups.
"""
