import { generateKeyPairSync, sign, verify } from 'node:crypto'
import type { Grant } from './grants.ts'

const INPUT = Buffer.alloc(700, 'x')
const CALLS = 300

/**
 * The cryptography of each request in microseconds: two RS256 signatures (access token, ID token), or one and the
 * verification of an assertion. One core can do no more.
 */
export function measureCryptography(): Readonly<Record<Grant, number>> {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const ecKey = { key: ec.privateKey, dsaEncoding: 'ieee-p1363' } as const
  const byRsa = sign('sha384', INPUT, rsa.privateKey)
  const byEc = sign('sha384', INPUT, ecKey)
  const signature = time(() => sign('RSA-SHA256', INPUT, rsa.privateKey))
  const rs384 = time(() => verify('sha384', INPUT, rsa.publicKey, byRsa))
  const es384 = time(() => verify('sha384', INPUT, { key: ec.publicKey, dsaEncoding: 'ieee-p1363' }, byEc))
  return {
    code: 2 * signature,
    refresh: 2 * signature,
    'client_credentials RS384': signature + rs384,
    'client_credentials ES384': signature + es384,
  }
}

function time(act: () => unknown): number {
  const before = process.cpuUsage()
  for (let call = 0; call < CALLS; call++) act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / CALLS
}
