import type { KeptRecord } from '../../../../audit/index.ts'
import { fill, findOwn, type StoredFacts } from '../../../../core/index.ts'
import { type FhirReason, getFhirWords, isFor } from '../../../../fhir/index.ts'
import { suggestScope } from '../../../../smart/index.ts'
import { type EventDetails, readDetails } from '../../../base/audit.ts'
import type { ExplainRequest } from '../../../base/context.ts'
import { isForSystemsOnly } from '../../../oauth/clients/validate.ts'
import type { AuthContext } from '../../../oauth/context.ts'
import { endSentence, explainReason } from '../../../words/explanation.ts'
import { explainOldText } from '../../../words/old-texts.ts'
import type { ComparedValue } from '../../../words/reason.ts'
import { OAUTH_REASONS } from '../../../words/reasons.ts'
import { describeDeclined } from '../../../words/scopes.ts'
import { MISSING_BY_LAUNCH, SHORTFALLS } from '../../../words/shortfalls.ts'
import { findScope, isFailed, isWithoutState, type LaunchGroup, nameFhirReason } from './describe.ts'

/** The cause of a refusal, in plain words, and its remedy. */
export interface Advice {
  readonly cause: string
  readonly action: string
  /** The scopes of the token, if they decided. */
  readonly scope?: string | undefined
}

/** Explains a refused or failed event, and a code that lacks something. A count of requests is explained by the first of them. */
export function adviseOn(
  record: KeptRecord,
  group: LaunchGroup,
  { explainRequest, hooks }: Pick<AuthContext, 'explainRequest' | 'hooks'>,
): Advice | undefined {
  if (record.repeats !== null) return undefined
  if (isFailed(record)) return adviseOnFailure(record)
  if (record.allowed)
    return record.kind === 'fhir'
      ? adviseOnOtherPatients(record, group, explainRequest)
      : adviseOnCode(record)
  const details = readDetails(record.details)
  const note = hooks?.explainRecord(record)
  if (record.kind === 'fhir' && record.status === 403 && !note)
    return adviseOnScope(record, group, explainRequest)
  const { cause, action } = note ?? adviseOnReason(record, details)
  return { cause: `${cause}${hooks ? describeClaimed(details) : ''}`, action }
}

/** Only developers read what a token says about itself: anybody can write such a token. */
function describeClaimed({ claimed = {} }: EventDetails): string {
  const { client_id, iss, aud } = claimed
  const launch = findClaimedLaunch({ claimed })
  const parts = [
    client_id && `from the app ${client_id}`,
    launch && `of the launch ${launch}`,
    iss && `issued by ${iss}`,
    aud && `for ${aud}`,
  ].filter(part => part)
  return parts.length === 0 ? '' : ` The token claims to be ${parts.join(', ')}; nobody has verified that.`
}

/** The `jti` of our tokens begins with the id of the launch. */
export function findClaimedLaunch({ claimed }: EventDetails): string | undefined {
  const [launch, ...rest] = claimed?.jti?.split('.') ?? []
  return rest.length > 0 ? launch : undefined
}

/** Explains a refusal that is not decided by the scopes of a token. */
export function adviseOnReason(
  { kind, reason }: { readonly kind: string; readonly reason?: string | null | undefined },
  details: EventDetails,
): Advice {
  const { detail = '', compared = [] } = details
  const { cause, action } = explainReason(details) ??
    explainOldText(kind, `${reason} (${detail})`, compared) ?? {
      cause: removeCode(reason ?? 'The request was refused.'),
      action:
        kind === 'register'
          ? 'Correct the member of the registration that the reason names, and register the app again.'
          : 'Correct the parameter that the reason names, and send the request again.',
    }
  const misspelt = listMisspelt(findScopes(compared)?.sent?.split(' ') ?? [])
  const hints = misspelt.map(facts => fill(SHORTFALLS['scope-misspelt'].remedy, facts))
  return { cause, action: [...hints, action].join(' ') }
}

function findScopes(compared: readonly ComparedValue[] = []): ComparedValue | undefined {
  return compared.find(({ name }) => name === 'scope')
}

/** The scopes that permit nothing, with what was probably meant. */
function listMisspelt(scopes: readonly string[]): readonly StoredFacts[] {
  return scopes.flatMap(scope => {
    const meant = suggestScope(scope)
    return meant === undefined ? [] : [{ scope, meant }]
  })
}

function removeCode(reason: string): string {
  return reason.replace(/^[a-z_]+: /, '')
}

/** Undefined if the request is complete and all requested scopes were granted. */
function adviseOnCode({ kind, patient_id, details }: KeptRecord): Advice | undefined {
  if (kind !== 'authorize') return undefined
  const { compared = [], declined, grantable } = readDetails(details)
  const found = [
    ...(isWithoutState(compared) ? [explainShortfall('state-missing')] : []),
    ...explainScopes({
      compared: findScopes(compared),
      hasPatient: patient_id !== null,
      declined,
      grantable,
    }),
  ]
  if (found.length === 0) return undefined
  return {
    cause: found.map(({ cause }) => cause).join(' '),
    action: found.map(({ action }) => action).join(' '),
  }
}

interface GrantedScopes extends Pick<EventDetails, 'declined' | 'grantable'> {
  readonly compared: ComparedValue | undefined
  readonly hasPatient: boolean
}

/** Explains the scopes that were requested, but not granted. */
function explainScopes({ compared, hasPatient, declined, grantable }: GrantedScopes): readonly Advice[] {
  const { sent = '', expected = [] } = compared ?? {}
  const granted = new Set(expected[0]?.split(' '))
  const missing = sent.split(' ').filter(one => !granted.has(one))
  if (missing.length === 0) return []
  const withoutPatient =
    hasPatient || asksForPatient(sent) ? [] : missing.filter(one => one.startsWith('patient/'))
  const byLaunch = missing.flatMap(one => findOwn(MISSING_BY_LAUNCH, one) ?? [])
  const misspelt = listMisspelt(missing)
  const isExplained = (one: string) =>
    withoutPatient.includes(one) ||
    findOwn(MISSING_BY_LAUNCH, one) !== undefined ||
    misspelt.some(({ scope }) => scope === one)
  const couldGet = new Set(grantable?.split(' '))
  const others = missing.filter(one => !isExplained(one) && !couldGet.has(one))
  const { cause, remedy } = OAUTH_REASONS['scope-without-patient']
  return [
    ...(withoutPatient.length > 0
      ? [{ cause, action: remedy }]
      : byLaunch.map(reason => explainShortfall(reason))),
    ...misspelt.map(facts => explainShortfall('scope-misspelt', facts)),
    ...(declined === undefined
      ? []
      : [explainShortfall('scopes-declined', { data: describeDeclined(declined) })]),
    ...(others.length === 0
      ? []
      : [
          explainShortfall(grantable === undefined ? 'scopes-missing' : 'scopes-not-registered', {
            scopes: others.join(', '),
          }),
        ]),
  ]
}

function explainShortfall(reason: keyof typeof SHORTFALLS, facts: StoredFacts = {}): Advice {
  const { cause, remedy } = SHORTFALLS[reason]
  return { cause: fill(cause, facts), action: fill(remedy, facts) }
}

/** Whether the user of a standalone launch chooses a patient. */
function asksForPatient(scopes: string): boolean {
  return /(?:^| )launch\/(?:patient|encounter)(?:[ ?]|$)/.test(scopes)
}

/** What is known about the token of a request, and what its scopes would permit. */
function explainAgain(record: KeptRecord, group: LaunchGroup, explainRequest: ExplainRequest | undefined) {
  const scope = findScope(group, record)
  const launched = group.first.find(event => event.patient_id !== null)?.patient_id ?? undefined
  const explained =
    scope === undefined
      ? undefined
      : explainRequest?.({
          method: record.method ?? 'GET',
          url: record.request ?? '',
          scope,
          patient: launched ?? record.patient_id ?? undefined,
          fhirUser: record.fhir_user ?? undefined,
        })
  return { scope, patient: launched, explained }
}

/** Failures of earlier releases that the status explains. */
const BY_STATUS: Readonly<Record<number, Advice>> = {
  406: {
    cause:
      'The server sends only JSON, but the header “Accept” or the parameter _format asks for another format.',
    action: 'Send “Accept: application/fhir+json”, or neither of the two.',
  },
  413: {
    cause: 'The body of the request is larger than the server accepts.',
    action: 'Send less at once: a smaller resource, or a Bundle of fewer entries.',
  },
  415: {
    cause: 'The server does not read the content type of the body.',
    action: 'Send “Content-Type: application/fhir+json”, and for a JSON Patch “application/json-patch+json”.',
  },
  422: {
    cause: 'The resource in the body is not valid FHIR R4, or breaks a rule of the server.',
    action:
      'Correct each element that the OperationOutcome of the response names, and send the request again.',
  },
}

/** The FHIR server permitted the request, but could not complete it. */
function adviseOnFailure({ reason, status, details }: KeptRecord): Advice {
  const named = explainReason(readDetails(details))
  if (named) return named
  const isOfServer = status >= 500
  const known = BY_STATUS[status]
  if (known && reason === null) return known
  return {
    cause: endSentence(
      reason ??
        (isOfServer
          ? 'The scopes permit the request, but the FHIR server could not complete it'
          : 'The scopes permit the request, but its parameters, headers or content are not valid'),
    ),
    action: isOfServer
      ? 'Try again later. The OperationOutcome of the response and the log have the cause.'
      : 'Correct what the OperationOutcome of the response names, and send the request again.',
  }
}

/** A search of a limited token finds nothing of another patient, which looks like missing data. */
function adviseOnOtherPatients(
  record: KeptRecord,
  group: LaunchGroup,
  explainRequest: ExplainRequest | undefined,
): Advice | undefined {
  if (!record.interaction?.startsWith('search') || !record.request?.includes('?')) return undefined
  const { scope, explained } = explainAgain(record, group, explainRequest)
  return explained?.allowed && explained.hint !== undefined
    ? { cause: `${explained.hint}.`, action: USE_PATIENT, scope }
    : undefined
}

function adviseOnScope(
  record: KeptRecord,
  group: LaunchGroup,
  explainRequest: ExplainRequest | undefined,
): Advice {
  const { scope, patient, explained } = explainAgain(record, group, explainRequest)
  const cause = record.reason ?? 'The scopes of the token do not permit the request.'
  const isPatientScope = (record.decided_by ?? explained?.by)?.startsWith('patient/')
  const asked = findAskedPatient(record)
  if (isPatientScope && patient !== undefined && asked !== undefined && asked !== patient)
    return {
      cause: `The token is for Patient/${patient}, but the request asks for Patient/${asked}.`,
      action: USE_PATIENT,
      scope,
    }
  const reason = nameFhirReason(record)
  if (isFor('insufficient-scope', reason) && explained?.allowed)
    return { cause: endSentence(cause), action: getFhirWords(reason).remedy, scope }
  if (explained?.allowed) return { ...adviseOnOutside(record, reason, patient), scope }
  // Without its body, a Bundle is not understood.
  if (explained?.status !== 403) return { cause, action: REQUEST_SCOPE, scope }
  const hint = explained.hint === undefined ? '' : `${explained.hint}. `
  // The response names patient/ scopes, which a backend service cannot get; the hint names its own.
  return scope !== undefined && isForSystemsOnly(scope)
    ? { cause: explained.text.replace(/ Required: .*/, ''), action: `${hint}${REQUEST_SYSTEM_SCOPE}`, scope }
    : { cause: explained.text, action: `${hint}${REQUEST_SCOPE}`, scope }
}

/** The patient in the path: `Patient/1`, `Patient/1/Condition`. */
function findAskedPatient({ request }: KeptRecord): string | undefined {
  return /^Patient\/([A-Za-z0-9.-]{1,64})(?:[/?]|$)/.exec(request ?? '')?.[1]
}

/** The scopes permit requests of this kind, so that the decision depends on the request, its content or stored data. */
function adviseOnOutside(
  { reason: text, interaction, resource_type: type }: KeptRecord,
  reason: FhirReason,
  patient: string | undefined,
): Pick<Advice, 'cause' | 'action'> {
  const cause = endSentence(text ?? getFhirWords('outside-access').sentence)
  const isExplained = isFor('not-within', reason) && reason !== 'response-not-within'
  const describe = (kind: string) => (isExplained ? cause : `${cause} ${kind}`)
  if (isExplained ? reason === 'search-not-limited' : interaction?.startsWith('search'))
    return {
      cause: describe(UNLIMITED_SEARCH),
      action: `Name the patient of the token in the search${describeOwnSearch(type, patient)}, and send every filter of the scope.`,
    }
  if (isExplained ? reason === 'content-not-within' : isWrite(interaction))
    return {
      cause: describe(OUTSIDE_WRITE),
      action: `Refer only to ${patient === undefined ? 'the patient of the token response' : `Patient/${patient}, the patient of the token`}, in every reference, and check the id in the URL.`,
    }
  return { cause: describe(OUTSIDE), action: isExplained ? FOLLOW_REASON : CHECK_RESOURCE }
}

function describeOwnSearch(type: string | null, patient: string | undefined): string {
  if (type === null || patient === undefined) return ''
  return type === 'Patient' ? `: Patient?_id=${patient}` : `: ${type}?patient=${patient}`
}

const WRITES = ['create', 'update', 'patch', 'delete']

/** Conditional ones have longer names. */
function isWrite(interaction: string | null): boolean {
  return WRITES.some(write => interaction?.startsWith(write))
}

const USE_PATIENT =
  'Use the id in “patient” of the token response. For another patient, launch the app again: a token keeps the patient that it was issued for.'
const REQUEST_SCOPE = getFhirWords('insufficient-scope').remedy
const REQUEST_SYSTEM_SCOPE =
  'Register the app for such a scope, and request a new token with it: a token keeps the scopes that it was issued with.'
const OUTSIDE =
  'The scopes permit requests of this kind, so the resource itself is outside the grant: it belongs to another patient, does not match the filter of a scope, or does not exist.'
const FOLLOW_REASON =
  'Change the request as the reason says. If the reason is a limit of the FHIR server, ask its operator.'
const OUTSIDE_WRITE =
  'The scopes permit requests of this kind, so the content or the stored resource is outside the grant: it belongs to another patient, refers to something that the token cannot see, or does not match the filter of a scope.'
const UNLIMITED_SEARCH =
  'The scopes permit the search, but only of the patient of the token and within their filters, and this server does not add these limits itself.'
const CHECK_RESOURCE =
  'Check the id, and use the patient of the token response. A limited token gets 403 also for an id that does not exist.'
