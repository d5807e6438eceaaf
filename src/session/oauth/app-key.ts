import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { computeThumbprint } from '../../jwt/index.ts'
import type { Sealer, Store } from '../../store/index.ts'

/** The public part of the app's key, as it is published (RFC 7517). */
export interface PublicJwk {
  readonly kty: 'EC'
  readonly crv: 'P-384'
  readonly x: string
  readonly y: string
  readonly kid: string
  readonly use: 'sig'
  readonly alg: 'ES384'
}

/** The key that the app proves itself with (`private_key_jwt`). All instances have the same, through the store. */
export interface AppKey {
  readonly kid: string
  readonly privateKey: CryptoKey
}

export interface AppKeys {
  signing(): Promise<AppKey>
  published(): Promise<readonly PublicJwk[]>
}

interface Row {
  readonly generation: number
  readonly public_jwk: string
  readonly private_jwk_sealed: string
}

const sealedFor = (generation: number) =>
  ({ table: 'app_key', column: 'private_jwk_sealed', row: String(generation) }) as const
const generate = promisify(generateKeyPair)

/** Made when it is first needed. A key that was sealed with another `SMART_SECRET` is followed by a new one. */
export function createAppKeys(options: {
  readonly store: Store
  readonly sealer: Sealer
  readonly clock: () => number
}): AppKeys {
  let opened: Promise<AppKey> | undefined
  const open = async (): Promise<AppKey> => {
    const [newest] = await findRows(options.store)
    const found = await openKey(options.sealer, newest)
    if (found) return found
    await makeNext(options, newest?.generation ?? 0)
    const [made] = await findRows(options.store)
    const key = await openKey(options.sealer, made)
    if (!key) throw new Error('Cannot open the key of the app: it is sealed with another secret')
    return key
  }
  const signing = () => {
    opened ??= open().catch(error => {
      opened = undefined
      throw error
    })
    return opened
  }
  return {
    signing,
    async published() {
      await signing()
      const rows = await findRows(options.store)
      return rows.map(row => JSON.parse(row.public_jwk) as PublicJwk)
    },
  }
}

function findRows({ db }: Store): Promise<readonly Row[]> {
  return db.selectFrom('app_key').selectAll().orderBy('generation', 'desc').execute()
}

async function openKey(sealer: Sealer, row: Row | undefined): Promise<AppKey | undefined> {
  const jwk = row && opening(sealer, row)
  if (!row || !jwk) return undefined
  const { kid } = JSON.parse(row.public_jwk) as PublicJwk
  const algorithm = { name: 'ECDSA', namedCurve: 'P-384' }
  return { kid, privateKey: await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['sign']) }
}

function opening(sealer: Sealer, row: Row): JsonWebKey | undefined {
  const text = sealer.tryOpen(row.private_jwk_sealed, sealedFor(row.generation))
  return text === undefined ? undefined : JSON.parse(text)
}

// Of several instances that start at once one keeps its key; the others throw theirs away.
async function makeNext(
  { store, sealer, clock }: { readonly store: Store; readonly sealer: Sealer; readonly clock: () => number },
  after: number,
): Promise<void> {
  const { privateKey } = await generate('ec', { namedCurve: 'P-384' })
  const jwk = privateKey.export({ format: 'jwk' })
  await store.db
    .insertInto('app_key')
    .values({
      generation: after + 1,
      public_jwk: JSON.stringify(publicPart(jwk)),
      private_jwk_sealed: sealer.seal(JSON.stringify(jwk), sealedFor(after + 1)),
      created_at: clock(),
    })
    .onConflict(conflict => conflict.doNothing())
    .execute()
}

function publicPart({ x = '', y = '' }: JsonWebKey): PublicJwk {
  const kid = computeThumbprint({ kty: 'EC', crv: 'P-384', x, y })
  return { kty: 'EC', crv: 'P-384', x, y, kid, use: 'sig', alg: 'ES384' }
}
