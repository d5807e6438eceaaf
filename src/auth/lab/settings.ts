import { findNearest } from '../../core/index.ts'
import type { RefusalCode } from '../words/reason.ts'

/** The settings of a lab launch, which hold for this launch and its grant alone (LAB-3). */
export interface LabSettings {
  /** The login of a launch without a sign-in: the SHA-256 of an id that no browser has. */
  readonly loginHash?: string | undefined
  readonly skipsConsent?: boolean | undefined
  /** The scopes that may be granted at most. */
  readonly scope?: string | undefined
  readonly tokenSeconds?: number | undefined
  readonly isPkceOptional?: boolean | undefined
  /** The `smart_style_url`, or `none`. */
  readonly style?: string | undefined
  readonly simulate?: LabSimulation | undefined
}

/** RFC 6749, 4.1.2.1; OIDC Core, 3.1.2.6. */
const AUTHORIZE_ERRORS = [
  'invalid_request',
  'unauthorized_client',
  'access_denied',
  'unsupported_response_type',
  'invalid_scope',
  'server_error',
  'temporarily_unavailable',
  'interaction_required',
  'login_required',
  'consent_required',
] as const satisfies readonly RefusalCode[]

/** RFC 6749, 5.2. */
const TOKEN_ERRORS = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
] as const satisfies readonly RefusalCode[]

export const SIMULATIONS = [
  ...AUTHORIZE_ERRORS.map(error => `authorize:${error}` as const),
  ...TOKEN_ERRORS.map(error => `token:${error}` as const),
  'token:500',
  'token:slow',
  ...TOKEN_ERRORS.map(error => `refresh:${error}` as const),
  'access-token:expired',
  'access-token:bad-signature',
  'fhir:401',
  'fhir:403',
  'fhir:429',
  'fhir:500',
  'fhir:slow',
] as const

export type LabSimulation = (typeof SIMULATIONS)[number]

export function isSimulation(name: string): name is LabSimulation {
  return SIMULATIONS.some(simulation => simulation === name)
}

/** The simulation that was probably meant: also by an error without its place, such as `access_denied`. */
export function suggestSimulation(name: string): LabSimulation | undefined {
  const meant = findNearest(name, SIMULATIONS)
  return SIMULATIONS.find(one => one === meant) ?? SIMULATIONS.find(one => one.endsWith(`:${name}`))
}

/** Marks an event of a launch that simulates an error. */
export function describeSimulation(simulate: LabSimulation): string {
  return `Simulated by the lab: ${simulate}`
}

/** Begins the reason in the audit record of a launch. */
export const LAUNCHED = 'Launched by the lab'
