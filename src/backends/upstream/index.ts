/**
 * The gateway: the same doors in front of any FHIR R4 server. It asks its Guard about every request, narrows what is
 * sent, judges what comes back before it is released, and puts its own address in the place of the upstream's. It keeps
 * no patient data and knows nothing of tokens and scopes itself.
 */

export { createCredentials, type UpstreamAuth } from './http/credentials.ts'
export { type GatewayOptions, gateway } from './server.ts'
