/**
 * The scope-enforcement interceptor. It authenticates every FHIR request by its bearer token and checks it against the
 * token's scopes. Other Node FHIR servers mount it as `sallyport-interceptor`. It issues no tokens, stores nothing and
 * serves no resources.
 */

export type { AuditRecord } from '../audit-record/index.ts'
export type { ClientCredential } from '../client-token/index.ts'
export type { Fetch } from '../core/index.ts'
export type { Interaction, Refused } from '../fhir/index.ts'
export type { Access, AccessFilter, Constraint, EnforcementPolicy, Grant } from '../smart/index.ts'
export { satisfies } from '../smart/index.ts'
export { serveInTurn } from '../turns/index.ts'
export { expressInterceptor, type FastifyPlugin, fastifyInterceptor, type Middleware } from './adapters.ts'
export { decide } from './decision/decide.ts'
export type { Decision } from './decision/decision.ts'
export { type Explanation, explain, type Question } from './explain.ts'
export { type Authorization, getAuthorization } from './host/check-exchange.ts'
export type { DecisionTrail, HostOptions } from './interceptor.ts'
export { type Caller, createInterceptor, type Interceptor, type InterceptorOptions } from './interceptor.ts'
export { type Refusal, refuse } from './refuse.ts'
export { applyTokenFailures } from './simulate.ts'
export type { TrustedIssuer, Verify } from './token/verifier.ts'
export { createTrailSender, type TrailSender, type TrailSenderOptions } from './trail/sender.ts'
