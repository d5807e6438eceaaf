import type { Client } from '../client/client.ts'
import type { Launch } from '../launch/launch-token.ts'
import { launchRefused } from '../launch/launch-token.ts'
import type { Login } from '../login/login.ts'
import { Refusal } from '../refusal.ts'
import type { AuthorizationRequest, Prompt } from './request.ts'
import type { Choosing } from './scope-terms.ts'

/** What an authorization request needs next. */
export type NextStep =
  | { readonly kind: 'login' }
  | { readonly kind: 'pick' }
  | { readonly kind: 'consent' }
  | { readonly kind: 'issue-code'; readonly login: Login }
  | { readonly kind: 'refuse'; readonly refusal: Refusal }

/** Everything that the decision is made from. */
export interface Situation {
  readonly request: AuthorizationRequest
  readonly client: Client
  readonly launch: Launch | undefined
  readonly login: Login | undefined
  /** What a standalone launch is to be opened for, as far as the client asks. */
  readonly choosing: Choosing
  readonly consented: boolean
}

/** Decides from the state alone; the pages do not know of each other. */
export function nextStep({ request, client, launch, login, choosing, consented }: Situation): NextStep {
  const silent = request.prompts.includes('none')
  if (!login || !isRecent(login, request))
    return silent ? refuse('login_required', 'The user must log in.') : { kind: 'login' }
  if (request.expectedSubject !== undefined && request.expectedSubject !== login.clinician.id)
    return refuse('login_required', 'Another user is logged in than the id_token_hint names.')
  if (launch && launch.clinicianUsername !== login.clinician.username)
    return { kind: 'refuse', refusal: launchRefused('foreign') }
  if (choosing !== 'nothing' && request.picked?.clinicianId !== login.clinician.id)
    return silent ? refuse('interaction_required', 'The user must choose a patient.') : { kind: 'pick' }
  if (consented || !needsConsent(client, request.prompts)) return { kind: 'issue-code', login }
  return silent ? refuse('consent_required', 'The user must agree.') : { kind: 'consent' }
}

function needsConsent(client: Client, prompts: readonly Prompt[]): boolean {
  return !client.firstParty || prompts.includes('consent')
}

/** Whether the login is as fresh as `prompt` and `max_age` ask for (OIDC Core, 3.1.2.1). */
function isRecent(login: Login, { prompts, maxAge, arrivedAt }: AuthorizationRequest): boolean {
  const again = prompts.includes('login') || prompts.includes('select_account')
  const earliest = again ? arrivedAt : maxAge === undefined ? 0 : arrivedAt - maxAge * 1000
  return login.createdAt >= earliest
}

function refuse(
  code: 'login_required' | 'consent_required' | 'interaction_required',
  description: string,
): NextStep {
  return { kind: 'refuse', refusal: new Refusal(code, description) }
}
