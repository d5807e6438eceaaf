import {
  type FactsArgument,
  fail,
  findNearest,
  type InnerReason,
  isFailure,
  toRecord,
} from '../../core/index.ts'
import { makeFault } from '../base/fault.ts'
import { LIMITS } from '../base/limits.ts'
import { readParameters } from '../base/request.ts'
import { findLogoUrlFault } from '../oauth/clients/urls.ts'
import { checkRequestedScope } from '../oauth/grants/grant-scope.ts'
import { readOptions } from '../oauth/launch/options.ts'
import type { LaunchRequest } from '../oauth/launch/prepare.ts'
import { describePage, type FactsOf } from '../words/reasons.ts'
import type { LabProblem } from './access.ts'
import { hasContext, isLaunchKind, LAUNCH_KINDS, type LaunchKind } from './kinds.ts'
import {
  isSimulation,
  type LabSettings,
  type LabSimulation,
  SIMULATIONS,
  suggestSimulation,
} from './settings.ts'

/** The parameters of `GET /lab/launch`. */
export interface LabLink {
  readonly kind: LaunchKind
  readonly username: string | undefined
  readonly skipsLogin: boolean
  /** A launch URL that need not be registered. */
  readonly launchUrl: string | undefined
  readonly redirects: boolean
  /** Whether nothing is launched. */
  readonly checks: boolean
  readonly launch: LaunchRequest
  readonly settings: LabSettings
}

/** The names of the launch form for parameters of the link. */
const OPTION_NAMES: Readonly<Record<string, string>> = {
  needPatientBanner: 'need_patient_banner',
  fhirContext: 'fhir_context',
  intent: 'intent',
  tenant: 'tenant',
}

export const LINK_PARAMETERS: readonly string[] = [
  'kind',
  'client',
  'patient',
  'encounter',
  'user',
  'skip_login',
  'skip_consent',
  'scope',
  'fhir_context',
  'intent',
  'tenant',
  'need_patient_banner',
  'token_ttl',
  'pkce',
  'launch_url',
  'style',
  'simulate',
  'redirect',
  'check',
]

/** Why a parameter makes no link. */
export function failLink(
  parameter: string,
  fault: InnerReason,
  suggestion: readonly InnerReason[] = [],
): LabProblem {
  return failLinkFor('link-parameter-invalid', { parameter, fault, suggestion })
}

export function failLinkFor<Reason extends 'link-parameter-invalid' | 'link-apps-too-many'>(
  reason: Reason,
  ...facts: FactsArgument<FactsOf<Reason>>
): LabProblem {
  const { status, sentence, facts: found } = describePage(reason, ...facts)
  return fail({ reason, facts: found, status, error: 'invalid_request', text: sentence })
}

export function readLink(query: unknown): LabLink | LabProblem {
  const unknown = Object.keys(toRecord(query)).find(name => !LINK_PARAMETERS.includes(name))
  if (unknown !== undefined)
    return failUnknown(unknown, LINK_PARAMETERS, findNearest(unknown, LINK_PARAMETERS))
  const { get, unreadable } = readParameters(query)
  const [repeated] = unreadable
  if (repeated !== undefined) return failLink(repeated, makeFault('parameter-repeated'))
  if (get('launch_url') !== undefined && get('client') === undefined)
    return failLink('client', makeFault('link-client-missing'))
  const options = readOptions({ get: name => get(OPTION_NAMES[name] ?? name), unreadable })
  if (isFailure(options)) return failLink(OPTION_NAMES[options.field] ?? options.field, options.fault)
  const parts = {
    kind: readKind(get('kind')),
    skipsLogin: readFlag(get, 'skip_login') ?? false,
    redirects: readFlag(get, 'redirect') ?? true,
    checks: readFlag(get, 'check') ?? false,
    scope: readScope(get('scope')),
    simulate: readSimulation(get('simulate')),
    tokenSeconds: readSeconds(get('token_ttl')),
    style: readStyle(get('style')),
    skipsConsent: readFlag(get, 'skip_consent') || undefined,
    isPkceOptional: readPkce(get('pkce')),
  }
  if (!isRead(parts))
    return (
      Object.values(parts).find(part => isFailure(part)) ?? failLink('kind', makeFault('parameter-repeated'))
    )
  const { kind, skipsLogin, redirects, checks, ...settings } = parts
  const surplus = hasContext(kind)
    ? undefined
    : LINK_PARAMETERS.find(name => !WITHOUT_CONTEXT.has(name) && get(name) !== undefined)
  if (surplus !== undefined) return failLink(surplus, makeFault('parameter-of-ehr-launch'))
  return {
    kind,
    username: get('user'),
    skipsLogin,
    launchUrl: get('launch_url'),
    redirects,
    checks,
    launch: {
      patientId: get('patient'),
      encounterId: get('encounter'),
      clientId: get('client'),
      options,
      repeated: false,
    },
    settings,
  }
}

/** The parameters of a launch without a launch token. */
const WITHOUT_CONTEXT: ReadonlySet<string> = new Set(['kind', 'client', 'launch_url', 'redirect', 'check'])

function readKind(name: string | undefined): LaunchKind | LabProblem {
  if (name === undefined) return 'ehr'
  return isLaunchKind(name)
    ? name
    : failLink('kind', makeFault('value-not-known', { known: Object.keys(LAUNCH_KINDS).join(', ') }))
}

/** Whether a link, right or wrong, asks to be checked only. */
export function isCheck(query: unknown): boolean {
  return readFlag(readParameters(query).get, 'check') === true
}

type Read<Parts> = { readonly [Name in keyof Parts]: Exclude<Parts[Name], LabProblem> }

function isRead<Parts extends object>(parts: Parts): parts is Parts & Read<Parts> {
  return !Object.values(parts).some(isFailure)
}

function readFlag(get: (name: string) => string | undefined, name: string): boolean | undefined | LabProblem {
  const text = get(name)
  if (text === undefined) return undefined
  if (text === '1' || text === 'true') return true
  return text === '0' || text === 'false' ? false : failLink(name, makeFault('value-not-a-switch'))
}

function readScope(scope: string | undefined): string | undefined | LabProblem {
  const refusal = scope === undefined ? undefined : checkRequestedScope(scope)
  return refusal ? failLink('scope', refusal) : scope
}

function readSimulation(name: string | undefined): LabSimulation | undefined | LabProblem {
  if (name === undefined || isSimulation(name)) return name
  return failUnknown('simulate', SIMULATIONS, suggestSimulation(name))
}

function failUnknown(name: string, known: readonly string[], meant: string | undefined): LabProblem {
  const suggestion = meant === undefined ? [] : [makeFault('meant-other', { meant })]
  return failLink(name, makeFault('value-not-known', { known: known.join(', ') }), suggestion)
}

function readSeconds(text: string | undefined): number | undefined | LabProblem {
  if (text === undefined) return undefined
  const seconds = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return seconds >= 1 && seconds <= LIMITS.extensionTokenSeconds
    ? seconds
    : failLink('token_ttl', makeFault('lifetime-malformed', { most: LIMITS.extensionTokenSeconds }))
}

function readStyle(url: string | undefined): string | undefined | LabProblem {
  if (url === undefined || url === 'none') return url
  const fault =
    url.length > LIMITS.urlCharacters
      ? makeFault('url-too-long', { longest: LIMITS.urlCharacters })
      : findLogoUrlFault(url)
  return fault ? failLink('style', makeFault('link-style-malformed', { fault })) : url
}

function readPkce(text: string | undefined): true | undefined | LabProblem {
  if (text === undefined || text === 'required') return undefined
  return text === 'optional' ? true : failLink('pkce', makeFault('pkce-malformed'))
}
