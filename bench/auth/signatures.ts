import { generateKeyPairSync, sign, verify } from 'node:crypto'

/** What of a token request is cryptography and nothing else, in microseconds. */
export interface Costs {
  readonly code: number
  readonly refresh: number
  readonly 'back end RS384': number
  readonly 'back end ES384': number
}

const INPUT = Buffer.alloc(700, 'x')
const CALLS = 300

/** Two RS256 signatures (access token, id_token), or one and the verification of an assertion. */
export function signatureCosts(): Costs {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const ecKey = { key: ec.privateKey, dsaEncoding: 'ieee-p1363' } as const
  const [byRsa, byEc] = [sign('sha384', INPUT, rsa.privateKey), sign('sha384', INPUT, ecKey)]
  const signature = time(() => sign('RSA-SHA256', INPUT, rsa.privateKey))
  const rs384 = time(() => verify('sha384', INPUT, rsa.publicKey, byRsa))
  const es384 = time(() => verify('sha384', INPUT, { key: ec.publicKey, dsaEncoding: 'ieee-p1363' }, byEc))
  return {
    code: 2 * signature,
    refresh: 2 * signature,
    'back end RS384': signature + rs384,
    'back end ES384': signature + es384,
  }
}

function time(act: () => unknown): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const before = process.cpuUsage()
    for (let call = 0; call < CALLS; call++) act()
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / CALLS)
  }
  return best
}
