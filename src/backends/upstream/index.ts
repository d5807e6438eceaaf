/**
 * The gateway: the FHIR API in front of any FHIR R4 server. It narrows the requests that it sends, checks every response
 * before it is released, and replaces the upstream's base URL by its own. It stores no patient data, and knows nothing
 * about tokens and scopes.
 *
 * A resource that the token may not see is left out of a page by search/check-page.ts, and of a read by
 * fhir-api/access/find-resource.ts. Both ask fhir-api/access/access-check.ts.
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
export { createUnknownPath, findSignOfHapi } from './recognize/recognition.ts'
export { createGateway, type GatewayOptions, type UpstreamTls } from './server.ts'
