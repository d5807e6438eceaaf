import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type ClientCredential, createClientToken } from '../client-token/index.ts'
import type { Settings } from '../config/index.ts'
import { isRecord, parseJson } from '../core/index.ts'
import type { ServiceAuthorization } from '../export/index.ts'
import { type Arguments, CommandFailure, failMissing, failMisuse, getOptional, type Io } from './command.ts'
import { createUpstreamAuthorization } from './upstream-authorization.ts'

/** The options of commands that ask another FHIR server as a backend service. */
export const SERVICE_OPTIONS = `\
  --client <id>         the backend service as which to ask
  --key <file>          its private key, as PEM or as a JWK (RSA, or EC with P-384)
  --kid <id>            the id of the key in the registered key set, if the file does not have it
  --secret-file <file>  a file with its secret, instead of a key
  --scope "<scopes>"    the scopes to request (default: system/*.rs)`

/** The access of a backend service to a FHIR server, whose SMART configuration names the token endpoint. */
export async function createServiceAuthorization(
  args: Arguments,
  io: Io,
  base: string,
  settings: Settings,
): Promise<ServiceAuthorization> {
  const clientId = getOptional(args, 'client')
  if (clientId === undefined) {
    const { getAuthorization, forget } = await createUpstreamAuthorization(base, settings)
    return { get: getAuthorization, forget }
  }
  const credential = readCredential(args, io)
  const token = createClientToken({
    tokenUrl: await findTokenUrl(base),
    clientId,
    credential,
    scope: getOptional(args, 'scope') ?? 'system/*.rs',
    fetch,
    clock: Date.now,
  })
  return { get: token.getAuthorization, forget: token.forget }
}

function readCredential(args: Arguments, io: Io): ClientCredential {
  const secretFile = getOptional(args, 'secret-file')
  if (secretFile !== undefined) return { secret: readOptionFile('secret-file', secretFile, io).trim() }
  const keyFile = getOptional(args, 'key') ?? failMissing(args, '--key or --secret-file')
  const { key, kid: own } = parseKey(readOptionFile('key', keyFile, io))
  const kid = getOptional(args, 'kid') ?? own ?? failMissing(args, '--kid')
  return { kid, alg: chooseAlgorithm(key), privateKey: key }
}

/** An error does not quote the file, which contains a secret. */
function readOptionFile(option: string, path: string, { cwd }: Io): string {
  try {
    return readFileSync(resolve(cwd, path), 'utf8')
  } catch {
    throw new CommandFailure(`Cannot use --${option}: ${path} cannot be read`)
  }
}

/** PEM, a JWK, or a JWK Set with one private key. */
function parseKey(text: string): { readonly key: KeyObject; readonly kid: string | undefined } {
  const json = parseJson(text)
  const keys = isRecord(json) && Array.isArray(json.keys) ? json.keys : [json]
  const [jwk, ...others] = keys.filter(isRecord)
  if (others.length > 0) throw failMisuse('Cannot use --key: expected one key')
  try {
    const key = jwk ? createPrivateKey({ key: jwk, format: 'jwk' }) : createPrivateKey(text)
    return { key, kid: typeof jwk?.kid === 'string' ? jwk.kid : undefined }
  } catch {
    throw new CommandFailure('Cannot use --key: expected a private key as PEM or JWK')
  }
}

/** The two algorithms that every server of SMART Backend Services supports. */
function chooseAlgorithm({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): 'RS384' | 'ES384' {
  if (asymmetricKeyType === 'rsa') return 'RS384'
  if (asymmetricKeyDetails?.namedCurve === 'secp384r1') return 'ES384'
  throw new CommandFailure('Cannot use --key: expected an RSA key, or an EC key with P-384')
}

const TIMEOUT_MS = 10_000

async function findTokenUrl(base: string): Promise<string> {
  const url = `${base}/.well-known/smart-configuration`
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const found: unknown = await response.json().catch(() => undefined)
  const endpoint = isRecord(found) ? found.token_endpoint : undefined
  if (typeof endpoint !== 'string' || !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ''))
    throw new CommandFailure(`Cannot get a token: ${url} names no token endpoint`)
  return endpoint
}
