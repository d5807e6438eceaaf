import type { KeptRecord } from '../../../audit/index.ts'
import { OUTSIDE_GRANT } from '../../../fhir/index.ts'
import { suggestScope } from '../../../smart/index.ts'
import { type EventDetails, readDetails } from '../../base/audit.ts'
import type { ExplainRequest } from '../../base/context.ts'
import type { Comparison } from '../../base/refusal.ts'
import { isForSystemsOnly } from '../../oauth/clients/validate.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { FHIR_CAUSES, findCause, OAUTH_CAUSES } from './causes.ts'
import { findScope, type LaunchGroup } from './describe.ts'

/** The cause of a refusal, in plain words, and its remedy. */
export interface Advice {
  readonly cause: string
  readonly action: string
  /** The scopes of the token, if they decided. */
  readonly scope?: string | undefined
}

/** Explains a refused event, and a code with fewer scopes. A count of requests is explained by the first of them. */
export function adviseOn(
  record: KeptRecord,
  group: LaunchGroup,
  { explainRequest, hooks }: Pick<AuthContext, 'explainRequest' | 'hooks'>,
): Advice | undefined {
  if (record.repeats !== null) return undefined
  if (record.allowed) return adviseOnFewerScopes(record)
  const note = hooks?.explainRecord(record)
  if (note) return note
  if (record.kind === 'fhir' && record.status === 403) return adviseOnScope(record, group, explainRequest)
  return adviseOnReason(record, readDetails(record.details))
}

/** Explains a refusal that is not decided by the scopes of a token. */
export function adviseOnReason(
  { kind, reason }: { readonly kind: string; readonly reason?: string | null | undefined },
  { detail = '', compared = [] }: EventDetails,
): Advice {
  const table = kind === 'fhir' ? FHIR_CAUSES : OAUTH_CAUSES
  const { cause, action } = findCause(table, `${reason} (${detail})`, compared) ?? {
    cause: removeCode(reason ?? 'The request was refused.'),
    action:
      kind === 'register'
        ? 'Correct the member of the registration that the reason names, and register the app again.'
        : 'Correct the parameter that the reason names, and send the request again.',
  }
  const misspelt = listMisspelt(findScopes(compared)?.sent)
  return { cause, action: [...misspelt.map(({ advice }) => advice), action].join(' ') }
}

function findScopes(compared: readonly Comparison[] = []): Comparison | undefined {
  return compared.find(({ name }) => name === 'scope')
}

/** The scopes that permit nothing, with what was probably meant. */
function listMisspelt(scopes = '') {
  return scopes.split(' ').flatMap(scope => {
    const meant = suggestScope(scope)
    return meant === undefined ? [] : [{ scope, advice: `Write ${meant} instead of ${scope}.` }]
  })
}

function removeCode(reason: string): string {
  return reason.replace(/^[a-z_]+: /, '')
}

/** Undefined if all requested scopes were granted. */
function adviseOnFewerScopes(record: KeptRecord): Advice | undefined {
  const compared = findScopes(readDetails(record.details).compared)
  const granted = new Set(compared?.expected[0]?.split(' '))
  const missing = compared?.sent?.split(' ').filter(one => !granted.has(one)) ?? []
  if (record.kind !== 'authorize' || missing.length === 0) return undefined
  const misspelt = listMisspelt(missing.join(' '))
  const isExplained = (one: string) =>
    FEWER.some(([name]) => name === one) || misspelt.some(({ scope }) => scope === one)
  const others = missing.filter(one => !isExplained(one))
  const rows = [
    ...FEWER.filter(([name]) => missing.includes(name)),
    ...misspelt.map(({ scope, advice }) => [scope, `${scope} permits nothing.`, advice] as const),
  ]
  const rest =
    others.length === 0
      ? []
      : [
          [
            '',
            `Not granted, or only in part: ${others.join(', ')}. The app is not registered for it, or the user did not allow it.`,
            'Register the app for these scopes, and allow them on the consent page.',
          ] as const,
        ]
  const all = [...rows, ...rest]
  return {
    cause: all.map(([, cause]) => cause).join(' '),
    action: all.map(([, , action]) => action).join(' '),
  }
}

/** Scopes that depend on the launch. */
const FEWER: readonly (readonly [scope: string, cause: string, action: string])[] = [
  [
    'launch/encounter',
    'No encounter was chosen, so the app does not get launch/encounter.',
    'Choose an encounter when you launch the app. The app must also work without one.',
  ],
  [
    'launch/patient',
    'No patient was chosen, so the app does not get launch/patient.',
    'Launch the app for a patient, or register it for a patient/ scope, so that the user chooses one.',
  ],
  [
    'launch',
    'The app started by itself, so the scope launch means nothing.',
    'Request launch only with the launch parameter of an EHR launch.',
  ],
]

function adviseOnScope(
  record: KeptRecord,
  group: LaunchGroup,
  explainRequest: ExplainRequest | undefined,
): Advice {
  const { method, request, reason, patient_id, fhir_user } = record
  const scope = findScope(group, record)
  const cause = reason ?? 'The scopes of the token do not permit the request.'
  const explained =
    scope === undefined
      ? undefined
      : explainRequest?.({
          method: method ?? 'GET',
          url: request ?? '',
          scope,
          patient:
            group.first.find(event => event.patient_id !== null)?.patient_id ?? patient_id ?? undefined,
          fhirUser: fhir_user ?? undefined,
        })
  if (explained?.allowed && cause.startsWith(`${OUTSIDE_GRANT} `))
    return { cause, action: FOLLOW_REASON, scope }
  if (explained?.allowed) return { cause: `${cause} ${OUTSIDE}`, action: CHECK_RESOURCE, scope }
  // Without its body, a Bundle is not understood.
  if (explained?.status !== 403) return { cause, action: REQUEST_SCOPE, scope }
  const hint = explained.hint === undefined ? '' : `${explained.hint}. `
  // The response names patient/ scopes, which a backend service cannot get; the hint names its own.
  return scope !== undefined && isForSystemsOnly(scope)
    ? { cause: explained.text.replace(/ Required: .*/, ''), action: `${hint}${REQUEST_SYSTEM_SCOPE}`, scope }
    : { cause: explained.text, action: `${hint}${REQUEST_SCOPE}`, scope }
}

const REQUEST_SCOPE =
  'Make the app request a scope that permits this, register the app for it, and launch the app again: a token keeps the scopes that it was issued with.'
const REQUEST_SYSTEM_SCOPE =
  'Register the app for such a scope, and request a new token with it: a token keeps the scopes that it was issued with.'
const OUTSIDE =
  'The scopes permit requests of this kind, so the resource itself is outside the grant: it belongs to another patient, does not match the filter of a scope, or does not exist.'
const FOLLOW_REASON =
  'Change the request as the reason says. If the reason is a limit of the FHIR server, ask its operator.'
const CHECK_RESOURCE =
  'Check the id, and use the patient of the token response. A limited token gets 403 also for an id that does not exist.'
