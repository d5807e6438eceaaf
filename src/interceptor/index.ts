/**
 * The scope-enforcement interceptor (service.md 1.2): it judges every FHIR request by its bearer token, and is what
 * another Node FHIR server mounts (`sallyport/interceptor`). It verifies tokens, decides, and refuses; it issues no
 * token, stores nothing, and never serves a resource of its own.
 */

export type { Interaction, Refused } from '../fhir/index.ts'
export type { Access, AccessFilter, Constraint, EnforcementPolicy, Grant } from '../smart/index.ts'
export { satisfies } from '../smart/index.ts'
export { decide } from './decision/decide.ts'
export type { Decision } from './decision/decision.ts'
export { type Explanation, explain, type Question } from './explain.ts'
export { expressInterceptor, type Middleware } from './express.ts'
export { fastifyInterceptor } from './fastify.ts'
export type { HostOptions } from './host/host.ts'
export { type Smart, smartOf } from './host/judge-exchange.ts'
export { type Caller, createInterceptor, type Interceptor, type InterceptorOptions } from './interceptor.ts'
export type { Refusal } from './refusal.ts'
export { refuse } from './refuse.ts'
export type { Fetch } from './token/key-set.ts'
export type { TrustedIssuer } from './token/trusted-issuer.ts'
export type { Verify } from './token/verifier.ts'
