import { isFailure, isRecord } from '../../fhir/index.ts'
import { LIMITS } from '../base/limits.ts'
import { readParameters } from '../base/request.ts'
import { findLogoUrlFault } from '../oauth/clients/urls.ts'
import { checkRequestedScope } from '../oauth/grants/grant-scope.ts'
import { readOptions } from '../oauth/launch/options.ts'
import type { LaunchRequest } from '../oauth/launch/prepare.ts'
import { isSimulation, type LabSettings, SIMULATIONS } from './settings.ts'

/** The parameters of `GET /lab/launch`. */
export interface LabLink {
  readonly username: string | undefined
  readonly skipsLogin: boolean
  /** A launch URL that need not be registered. */
  readonly launchUrl: string | undefined
  readonly redirects: boolean
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
]

class Fault extends Error {}

/** Reads the parameters of a link, or returns the fault. */
export function readLink(query: unknown): LabLink | string {
  try {
    return readParts(query)
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
}

function readParts(query: unknown): LabLink {
  const unknown = Object.keys(isRecord(query) ? query : {}).find(name => !LINK_PARAMETERS.includes(name))
  if (unknown !== undefined) throw new Fault(`${unknown}: expected one of ${LINK_PARAMETERS.join(', ')}`)
  const { get, unreadable } = readParameters(query)
  const [repeated] = unreadable
  if (repeated !== undefined) throw new Fault(`${repeated}: expected one value`)
  if (get('launch_url') !== undefined && get('client') === undefined)
    throw new Fault('client: expected the client id of the app at launch_url')
  const options = readOptions({ get: name => get(OPTION_NAMES[name] ?? name), unreadable })
  if (isFailure(options)) throw new Fault(`${OPTION_NAMES[options.field] ?? options.field}: ${options.text}`)
  return {
    username: get('user'),
    skipsLogin: readFlag(get, 'skip_login', false),
    launchUrl: get('launch_url'),
    redirects: readFlag(get, 'redirect', true),
    launch: {
      patientId: get('patient'),
      encounterId: get('encounter'),
      clientId: get('client'),
      options,
      repeated: false,
    },
    settings: readSettings(get),
  }
}

type Get = (name: string) => string | undefined

function readSettings(get: Get): LabSettings {
  const [scope, simulate, tokenSeconds, style] = [
    readScope(get('scope')),
    readSimulation(get('simulate')),
    readTtl(get),
    readStyle(get('style')),
  ]
  return {
    ...(readFlag(get, 'skip_consent', false) ? { skipsConsent: true } : {}),
    ...(readPkce(get('pkce')) ? { isPkceOptional: true } : {}),
    ...(scope === undefined ? {} : { scope }),
    ...(tokenSeconds === undefined ? {} : { tokenSeconds }),
    ...(simulate === undefined ? {} : { simulate }),
    ...(style === undefined ? {} : { style }),
  }
}

function readFlag(get: Get, name: string, otherwise: boolean): boolean {
  const text = get(name)
  if (text === undefined) return otherwise
  if (text === '1' || text === 'true') return true
  if (text === '0' || text === 'false') return false
  throw new Fault(`${name}: expected 1 or 0`)
}

function readScope(scope: string | undefined): string | undefined {
  const refusal = scope === undefined ? undefined : checkRequestedScope(scope)
  if (refusal) throw new Fault(`scope: ${refusal.description}`)
  return scope
}

function readSimulation(name: string | undefined) {
  if (name === undefined || isSimulation(name)) return name
  throw new Fault(`simulate: expected one of ${SIMULATIONS.join(', ')}`)
}

function readTtl(get: Get): number | undefined {
  const text = get('token_ttl')
  if (text === undefined) return undefined
  const seconds = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (seconds >= 1 && seconds <= LIMITS.extensionTokenSeconds) return seconds
  throw new Fault(`token_ttl: expected 1 to ${LIMITS.extensionTokenSeconds} seconds`)
}

function findStyleFault(url: string): string | undefined {
  return url.length > LIMITS.urlCharacters
    ? `expected at most ${LIMITS.urlCharacters} characters`
    : findLogoUrlFault(url)
}

function readStyle(text: string | undefined): string | undefined {
  const fault = text === undefined || text === 'none' ? undefined : findStyleFault(text)
  if (fault !== undefined) throw new Fault(`style: ${fault}, or none`)
  return text
}

function readPkce(text: string | undefined): boolean {
  if (text === undefined || text === 'required') return false
  if (text === 'optional') return true
  throw new Fault('pkce: expected optional or required')
}
