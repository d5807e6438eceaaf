import { CLOCK_TOLERANCE_SECONDS } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import { opensRecords } from '../../base/user.ts'
import { isOwnAcr, meetsAcr } from '../../users/factors/methods.ts'
import type { Login } from '../../users/find-login.ts'
import type { Client } from '../clients/client.ts'
import type { Launch } from '../launch/launch-token.ts'
import type { PickerChoice } from './authorized-context.ts'
import type { AuthorizationRequest } from './request.ts'

export type NextStep =
  | { readonly kind: 'login' }
  | { readonly kind: 'pick' }
  | { readonly kind: 'consent' }
  | { readonly kind: 'issue-code'; readonly login: Login }
  | { readonly kind: 'refuse'; readonly refusal: AuthRefusal }

/** Everything that the next step depends on. */
export interface AuthorizationState {
  readonly request: AuthorizationRequest
  readonly client: Client
  readonly launch: Launch | undefined
  readonly login: Login | undefined
  /** Whether the user of the login has a second factor here, which a new sign-in would ask for. */
  readonly hasSecondFactor: boolean
  /** What the user of a standalone launch must choose. */
  readonly picker: PickerChoice
  readonly consented: boolean
  readonly skipsConsent: boolean
}

/** Decides from the state alone, so that the pages do not depend on each other. */
export function chooseNextStep({
  request,
  client,
  launch,
  login,
  hasSecondFactor,
  picker,
  consented,
  skipsConsent,
}: AuthorizationState): NextStep {
  const silent = request.prompts.includes('none')
  if (!login || !isRecent(login, request) || needsStepUp(login, hasSecondFactor, request, silent))
    return silent ? makeRefusal('login-required') : { kind: 'login' }
  if (request.essentialAcr && !request.essentialAcr.some(value => meetsAcr(login, value)))
    return makeRefusal('sign-in-too-weak')
  if (request.expectedSubject !== undefined && request.expectedSubject !== login.user.id)
    return makeRefusal('id-token-hint-of-another-user')
  if (!opensRecords(login.user)) return makeRefusal('account-opens-no-records')
  if (launch && launch.username !== login.user.username) return makeRefusal('launch-of-another-user')
  if (picker !== 'nothing' && request.picked?.userId !== login.user.id)
    return silent ? makeRefusal('patient-choice-required') : { kind: 'pick' }
  if (consented || skipsConsent || !needsConsent(client, request)) return { kind: 'issue-code', login }
  return silent ? makeRefusal('consent-required') : { kind: 'consent' }
}

/** Whether the user is asked what the client may use: an assistant always asks. */
export function needsConsent(
  client: Pick<Client, 'firstParty'>,
  { prompts, resource }: Pick<AuthorizationRequest, 'prompts' | 'resource'>,
): boolean {
  return !client.firstParty || resource !== undefined || prompts.includes('consent')
}

/** Whether the login is as recent as `prompt` and `max_age` require (OIDC Core, 3.1.2.1). */
function isRecent(login: Login, { prompts, maxAge, arrivedAt }: AuthorizationRequest): boolean {
  const again = prompts.includes('login') || prompts.includes('select_account')
  if (again && login.createdAt < arrivedAt) return false
  if (maxAge === undefined) return true
  const tolerance = login.issuer === undefined ? 0 : CLOCK_TOLERANCE_SECONDS * 1000
  return login.authTime + tolerance >= arrivedAt - maxAge * 1000
}

/**
 * `acr_values` is voluntary (OIDC Core, 5.5.1.1): the user signs in again once for each request, and the id_token says what
 * that was. A login with a password of a user without a second factor cannot become any stronger.
 */
function needsStepUp(
  login: Login,
  hasSecondFactor: boolean,
  { acrValues, arrivedAt }: AuthorizationRequest,
  silent: boolean,
): boolean {
  if (acrValues === undefined || silent || login.createdAt >= arrivedAt) return false
  if (acrValues.some(value => meetsAcr(login, value))) return false
  return login.issuer !== undefined || (hasSecondFactor && acrValues.some(isOwnAcr))
}

function makeRefusal(
  reason:
    | 'login-required'
    | 'sign-in-too-weak'
    | 'id-token-hint-of-another-user'
    | 'account-opens-no-records'
    | 'launch-of-another-user'
    | 'patient-choice-required'
    | 'consent-required',
): NextStep {
  return { kind: 'refuse', refusal: refuse(reason) }
}
