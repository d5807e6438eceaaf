/**
 * The MCP endpoint: another way in to the FHIR server, for AI assistants. A tool is a value that makes FHIR requests of the
 * caller and says their results in few words. The requests are decided, performed and recorded like all others. The module
 * knows neither sign-in nor consent, and never writes to a record: it keeps what an assistant proposes.
 */

export { type CallCounter, createCallCounter } from './count-calls.ts'
export { createMcp, type McpOptions } from './server.ts'
export { TOOLS } from './tools.ts'
