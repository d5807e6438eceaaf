import type { Counter, Registry } from '../web/index.ts'

/** Counts the events that show how the auth server is used. */
export interface AuthMetrics {
  /** By grant type, and `issued` or the error code. */
  readonly tokenRequests: Counter
  /** By outcome. */
  readonly launches: Counter
  /** By provider (`password` for the clinician table), and `success` or the reason. */
  readonly signIns: Counter
}

export function createAuthMetrics(registry: Registry): AuthMetrics {
  return {
    tokenRequests: registry.counter({
      name: 'sallyport_token_requests_total',
      help: 'Token requests by grant type; the outcome is issued or an OAuth error code.',
      labels: ['grant_type', 'outcome'],
    }),
    launches: registry.counter({
      name: 'sallyport_launches_total',
      help: 'Launches by the portal, by POST /launch-contexts and by the lab: issued, refused or failed.',
      labels: ['outcome'],
    }),
    signIns: registry.counter({
      name: 'sallyport_sign_ins_total',
      help: 'Sign-ins by provider id, or password; the outcome is success or the reason of the refusal.',
      labels: ['provider', 'outcome'],
    }),
  }
}
