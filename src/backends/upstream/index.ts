/**
 * The gateway: the FHIR API in front of any FHIR R4 server. It narrows the requests that it sends, checks every response
 * before it is released, and replaces the upstream's base URL by its own. It stores no patient data, and knows nothing
 * about tokens and scopes.
 */

export {
  checkUpstream,
  type Recommendation,
  recommendSettings,
  type UpstreamReport,
} from './check/check-upstream.ts'
export type { Finding, Send } from './check/probe.ts'
export { createCredentials, type UpstreamAuth } from './http/send.ts'
export { chooseProfile, describeProfile } from './profile.ts'
export { createUnknownPath, findSignOfHapi } from './recognition.ts'
export { createGateway, type GatewayOptions, type UpstreamTls } from './server.ts'
