import { isRecord, parseJson } from '../../../core/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { AuthContext } from '../context.ts'
import { checkGrantedScope, checkRequestedScope, compareScope, grantScope } from '../grants/grant-scope.ts'
import { type KeyRing, verifyOwnJwt } from '../keys/key-ring.ts'
import { makeScopeTerms, predictContext, readRequestedScope } from './authorized-context.ts'
import { PROMPTS, type Prompt, type RequestFinding, type RequestInput } from './request.ts'

/** None of these parameters may be repeated (RFC 6749, 3.1). */
const READ = [
  'response_type',
  'response_mode',
  'scope',
  'state',
  'aud',
  'resource',
  'launch',
  'code_challenge',
  'code_challenge_method',
  'nonce',
  'prompt',
  'max_age',
  'acr_values',
  'claims',
  'id_token_hint',
  'login_hint',
  'request',
  'request_uri',
  'registration',
] as const

/** OIDC Core, 6 and 7. Ignoring these parameters would change the meaning of the request. */
const UNSUPPORTED = [
  ['request', 'request-object-unsupported'],
  ['request_uri', 'request-uri-unsupported'],
  ['registration', 'registration-unsupported'],
] as const

export function checkRepeated({ parameters }: RequestInput): AuthRefusal | undefined {
  const name = READ.find(one => parameters.unreadable.has(one))
  return name && refuse('parameter-unreadable', { parameter: name })
}

/** Anonymous requests are stored for ten minutes, so their parameters are limited. */
export function checkLengths({ parameters }: Pick<RequestInput, 'parameters'>): AuthRefusal | undefined {
  const found = Object.entries(LIMITS.parameters).find(
    ([name, longest]) => (parameters.get(name)?.length ?? 0) > longest,
  )
  return found && refuse('parameter-too-long', { parameter: found[0], longest: found[1] })
}

export function checkUnsupported({ parameters }: RequestInput): AuthRefusal | undefined {
  const found = UNSUPPORTED.find(([name]) => parameters.get(name) !== undefined)
  return found && refuse(found[1])
}

/** At least one scope must be grantable (RFC 6749, 3.3). Which ones are granted is decided when the code is issued. */
export function checkScope(
  { client, parameters, resource }: RequestInput,
  { settings }: AuthContext,
): RequestFinding | AuthRefusal {
  const scope = readRequestedScope({ client, parameters })
  const refused = checkRequestedScope(scope)
  if (refused) return refused
  const launched = parameters.get('launch') !== undefined
  const available = predictContext(settings, { client, resource }, { scope, launched })
  const terms = makeScopeTerms(settings, { client, resource }, available)
  const granted = grantScope(scope, terms)
  const lacksPatient = granted === '' && grantScope(scope, { ...terms, hasPatient: true }) !== ''
  const notGranted = lacksPatient ? refuse('scope-without-patient') : checkGrantedScope(granted)
  return notGranted?.withComparison(compareScope(scope, client.scope)) ?? {}
}

/** OIDC Core, 3.1.2.1. */
export function checkPrompt({ parameters }: RequestInput): RequestFinding | AuthRefusal {
  // Without duplicates, because the request is stored.
  const values = [...new Set((parameters.get('prompt') ?? '').split(' ').filter(value => value !== ''))]
  if (!values.every(isPrompt)) return refuse('prompt-unknown')
  if (values.includes('none') && values.length > 1) return refuse('prompt-none-with-others')
  return { prompts: values }
}

export function checkMaxAge({ parameters }: RequestInput): RequestFinding | AuthRefusal {
  const text = parameters.get('max_age')
  if (text === undefined) return {}
  return /^\d{1,9}$/.test(text) ? { maxAge: Number(text) } : refuse('max-age-malformed')
}

/** Voluntary (OIDC Core, 3.1.2.1): passed on to the identity provider. */
export function checkAcrValues({ parameters }: RequestInput): RequestFinding {
  const acrValues = (parameters.get('acr_values') ?? '').split(' ').filter(value => value !== '')
  return acrValues.length === 0 ? {} : { acrValues }
}

/**
 * Of `claims` (OIDC Core, 5.5), only an essential `acr` is read. Ignoring it would give an app a weaker sign-in than it must have
 * (5.5.1.1).
 */
export function checkEssentialAcr({ parameters }: RequestInput): RequestFinding | AuthRefusal {
  const text = parameters.get('claims')
  if (text === undefined) return {}
  const claims = parseJson(text)
  if (!isRecord(claims)) return refuse('claims-malformed')
  const acr = isRecord(claims.id_token) ? claims.id_token.acr : undefined
  if (!isRecord(acr) || acr.essential !== true) return {}
  const values = [acr.value, acr.values].flat().filter(value => typeof value === 'string')
  return values.length === 0 ? {} : { acrValues: values, essentialAcr: values }
}

/** An ID token of this server, expired or not, that names the expected user. */
export async function checkIdTokenHint(
  { parameters }: RequestInput,
  keys: KeyRing,
  issuer: string,
): Promise<RequestFinding | AuthRefusal> {
  const hint = parameters.get('id_token_hint')
  if (hint === undefined) return {}
  const { iss, sub } = verifyOwnJwt(hint, 'JWT', await keys.listPublicKeys()) ?? {}
  return iss === issuer && typeof sub === 'string'
    ? { expectedSubject: sub }
    : refuse('id-token-hint-not-ours')
}

function isPrompt(value: string): value is Prompt {
  return PROMPTS.some(prompt => prompt === value)
}
