"""Any connector as an MCP server: `ask`, and the contract's operations, as tools. Needs the package `mcp`."""
