import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { parse } from 'yaml'
import type { UpstreamTls } from '../../backends/upstream/index.ts'
import { parsePolicyText, type Settings } from '../../config/index.ts'
import { describeError, findCode, isFailure } from '../../core/index.ts'
import {
  exportOperations,
  isId,
  listGatewayOperations,
  type OperationRule,
  operations,
  parsePassedOperation,
} from '../../fhir/index.ts'
import type { TrustedIssuer } from '../../interceptor/index.ts'
import { type AccessPolicy, createUserFilter, type EnforcementPolicy } from '../../smart/index.ts'
import { CommandFailure, failMisuse } from '../command.ts'

export interface Tls {
  readonly cert: string
  readonly key: string
}

/** Reads and tests certificate and key, so that a wrong file stops the start or the reload and not a request. */
export function readTls({ tlsCert, tlsKey }: Pick<Settings, 'tlsCert' | 'tlsKey'>): Tls | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const tls = { cert: readPem('SMART_TLS_CERT', tlsCert), key: readPem('SMART_TLS_KEY', tlsKey) }
  return testTls('SMART_TLS', tls)
}

function testTls<T extends UpstreamTls>(prefix: string, tls: T): T {
  try {
    createSecureContext(tls)
    return tls
  } catch (error) {
    const reason = describeError(error)
    throw new CommandFailure(`Cannot use ${prefix}_CERT with ${prefix}_KEY: ${reason}`)
  }
}

function readPem(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = findCode(error) ?? String(error)
    throw new CommandFailure(`Cannot read ${variable} ${path}: ${code}`)
  }
}

export function readFeedTls(settings: Settings['auditFeeds']): UpstreamTls {
  return readClientTls('SMART_AUDIT_TLS', settings)
}

export function readUpstreamTls(settings: Settings['fhir']['upstream']): UpstreamTls {
  return readClientTls('SMART_FHIR_UPSTREAM_TLS', settings)
}

type ClientTlsSettings = Pick<Settings['auditFeeds'], 'tlsCert' | 'tlsKey' | 'tlsCa'>

function readClientTls(prefix: string, { tlsCert, tlsKey, tlsCa }: ClientTlsSettings): UpstreamTls {
  return testTls(prefix, {
    ...(tlsCert !== undefined && { cert: readPem(`${prefix}_CERT`, tlsCert) }),
    ...(tlsKey !== undefined && { key: readPem(`${prefix}_KEY`, tlsKey) }),
    ...(tlsCa !== undefined && { ca: readPem(`${prefix}_CA`, tlsCa) }),
  })
}

const ISSUERS_VARIABLE = 'SMART_TRUSTED_ISSUERS_FILE'

type IssuerEntry = Readonly<Record<string, unknown>>

/** The keys of an entry and their parsers. Undefined means an invalid value. */
const ISSUER_KEYS = {
  issuer: readUrl,
  'jwks-url': readUrl,
  audience: readStrings,
  typ: readStrings,
  'patient-claim': readString,
  'fhir-user-claim': readString,
  'scope-claim': readString,
} as const

/** Issuers of `smart.fhir.trusted-issuers-file`, whose tokens are accepted in addition to the auth server's. */
export function readTrustedIssuers({ fhir, allowHttp, onLoopback }: Settings): readonly TrustedIssuer[] {
  const path = fhir.trustedIssuersFile
  if (path === undefined) return []
  const entries = readIssuerEntries(path)
  return entries.map((entry, index) => {
    const issuer = readIssuer(entry, path, index + 1)
    const addresses = [issuer.issuer, issuer.jwksUrl]
    if (!onLoopback && !allowHttp && addresses.some(it => it.startsWith('http:')))
      throw failIssuers(
        path,
        `entry ${index + 1} must be https unless on loopback, or set SMART_ALLOW_HTTP=true`,
      )
    return issuer
  })
}

function readIssuerEntries(path: string): readonly IssuerEntry[] {
  let content: unknown
  try {
    content = parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw failIssuers(path, isMissing(error) ? String(error.code) : 'it is not YAML')
  }
  if (!Array.isArray(content) || !content.every(it => typeof it === 'object' && it !== null))
    throw failIssuers(path, 'expected a list of issuers')
  return content
}

function readIssuer(entry: IssuerEntry, path: string, number: number): TrustedIssuer {
  const unknown = Object.keys(entry).find(name => !Object.hasOwn(ISSUER_KEYS, name))
  if (unknown !== undefined)
    throw failIssuers(
      path,
      `entry ${number} has unknown key ${unknown}; expected ${Object.keys(ISSUER_KEYS).join(', ')}`,
    )
  const read = <Name extends keyof typeof ISSUER_KEYS>(name: Name) => {
    if (entry[name] === undefined) return undefined
    const value = ISSUER_KEYS[name](entry[name])
    if (value === undefined) throw failIssuers(path, `entry ${number} has an invalid ${name}`)
    return value as NonNullable<ReturnType<(typeof ISSUER_KEYS)[Name]>>
  }
  const issuer = read('issuer')
  const jwksUrl = read('jwks-url')
  if (issuer === undefined || jwksUrl === undefined)
    throw failIssuers(path, `entry ${number} needs issuer and jwks-url`)
  return {
    issuer,
    jwksUrl,
    audiences: read('audience'),
    types: read('typ'),
    patientClaim: read('patient-claim'),
    fhirUserClaim: read('fhir-user-claim'),
    scopeClaim: read('scope-claim'),
  }
}

function readUrl(value: unknown): string | undefined {
  const url = typeof value === 'string' ? URL.parse(value) : null
  return url && /^https?:$/.test(url.protocol) && url.username === '' ? String(value) : undefined
}

function readString(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function readStrings(value: unknown): readonly string[] | undefined {
  const texts: readonly unknown[] = Array.isArray(value) ? value : [value]
  return texts.length > 0 && texts.every(it => typeof it === 'string' && it !== '')
    ? (texts as string[])
    : undefined
}

function failIssuers(path: string, reason: string): CommandFailure {
  return new CommandFailure(`Cannot read ${ISSUERS_VARIABLE} ${path}: ${reason}`)
}

// The YAML parser has its own codes.
function isMissing(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'syscall' in error && 'code' in error
}

/**
 * Reads the file of `smart.fhir.policy-file` once, at the start (docs/policy.md). Without one, every clinician may
 * see every patient.
 */
export function readPolicy({ fhir }: Settings): AccessPolicy | undefined {
  if (fhir.policyFile === undefined) return undefined
  const policy = parsePolicyText(readPolicyFile(fhir.policyFile))
  if (isFailure(policy))
    throw new CommandFailure(`Cannot use policy file ${fhir.policyFile}: ${policy.problem}`)
  return policy
}

export function readUserFilter(settings: Settings): EnforcementPolicy['userFilter'] {
  const policy = readPolicy(settings)
  return policy && createUserFilter(policy)
}

function readPolicyFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const reason = describeError(cause)
    throw new CommandFailure(`Cannot read policy file ${path}: ${reason}`)
  }
}

export function findOfferedOperations({ fhir }: Settings): readonly OperationRule[] {
  const { upstream, upstreamUrl } = fhir
  const exporting = exportsData(fhir) ? exportOperations : []
  if (upstreamUrl === undefined) return [...exporting, ...operations]
  return [...exporting, ...listGatewayOperations(upstream.operations.map(readOperation))]
}

/** Whether the FHIR server offers bulk exports as its own. A site may still list the upstream's operation. */
export function exportsData({ upstreamUrl, upstream }: Settings['fhir']): boolean {
  if (upstreamUrl === undefined) return true
  return upstream.export !== 'off' && !upstream.operations.some(it => /^\$export(?::read)?$/.test(it))
}

function readOperation(text: string): OperationRule {
  const rule = parsePassedOperation(text)
  if (!rule)
    throw new CommandFailure(
      `Cannot use SMART_FHIR_UPSTREAM_OPERATIONS: ${text} is not an operation, or its type is not in R4`,
    )
  return rule
}

const USERS = ['Practitioner', 'PractitionerRole', 'Patient', 'RelatedPerson', 'Person']

interface FhirUser {
  readonly type: string
  readonly id: string
}

/** An id alone means a Practitioner. */
export function readFhirUser(text: string, fhirBaseUrl: string): FhirUser {
  const below = text.startsWith(`${fhirBaseUrl}/`) ? text.slice(fhirBaseUrl.length + 1) : text
  const [, type = 'Practitioner', id = ''] = /^(?:([A-Za-z]+)\/)?([^/]+)$/.exec(below) ?? []
  if (isId(id) && USERS.includes(type)) return { type, id }
  throw failMisuse(
    'Cannot use --fhir-user: expected the id of a Practitioner, or for example Practitioner/<id>',
  )
}
