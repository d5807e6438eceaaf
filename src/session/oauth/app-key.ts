import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { computeThumbprint } from '../../jwt/index.ts'
import type { Sealer, Store } from '../../store/index.ts'
import { runInThreadPool } from '../../turns/index.ts'

/** SMART 2.2, asymmetric authentication. ES384 costs both servers more, and is only for keys of earlier versions. */
const ALGORITHMS = {
  RS384: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-384' },
  ES384: { name: 'ECDSA', namedCurve: 'P-384' },
} as const

export interface AppPublicJwk {
  readonly kty: 'RSA' | 'EC'
  readonly kid: string
  readonly use: 'sig'
  readonly alg: keyof typeof ALGORITHMS
}

/** The key with which the app authenticates (`private_key_jwt`). All instances share it through the store. */
export interface AppKey {
  readonly kid: string
  readonly privateKey: CryptoKey
}

export interface AppKeys {
  signing(): Promise<AppKey>
  published(): Promise<readonly AppPublicJwk[]>
}

interface Row {
  readonly generation: number
  readonly public_jwk: string
  readonly private_jwk_sealed: string
}

const toSealedCell = (generation: number) =>
  ({ table: 'app_key', column: 'private_jwk_sealed', row: String(generation) }) as const
const generate = promisify(generateKeyPair)

/** The key is created on first use. If `SMART_SECRET` changed, a new key is created. */
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
    if (!key) throw new Error("Cannot decrypt the app's key: it was encrypted with another secret")
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
      return rows.map(row => JSON.parse(row.public_jwk) as AppPublicJwk)
    },
  }
}

function findRows({ db }: Store): Promise<readonly Row[]> {
  return db.selectFrom('app_key').selectAll().orderBy('generation', 'desc').execute()
}

async function openKey(sealer: Sealer, row: Row | undefined): Promise<AppKey | undefined> {
  const jwk = row && tryOpen(sealer, row)
  if (!row || !jwk) return undefined
  const { kid, alg } = JSON.parse(row.public_jwk) as AppPublicJwk
  return { kid, privateKey: await crypto.subtle.importKey('jwk', jwk, ALGORITHMS[alg], false, ['sign']) }
}

function tryOpen(sealer: Sealer, row: Row): JsonWebKey | undefined {
  const text = sealer.tryOpen(row.private_jwk_sealed, toSealedCell(row.generation))
  return text === undefined ? undefined : JSON.parse(text)
}

// If several instances start at once, one stores its key and the others discard theirs.
async function makeNext(
  { store, sealer, clock }: { readonly store: Store; readonly sealer: Sealer; readonly clock: () => number },
  after: number,
): Promise<void> {
  const { privateKey } = await runInThreadPool(() => generate('rsa', { modulusLength: 2048 }))
  const jwk = privateKey.export({ format: 'jwk' })
  await store.db
    .insertInto('app_key')
    .values({
      generation: after + 1,
      public_jwk: JSON.stringify(toPublicKey(jwk)),
      private_jwk_sealed: sealer.seal(JSON.stringify(jwk), toSealedCell(after + 1)),
      created_at: clock(),
    })
    .onConflict(conflict => conflict.doNothing())
    .execute()
}

function toPublicKey({ n = '', e = '' }: JsonWebKey): AppPublicJwk & Pick<JsonWebKey, 'n' | 'e'> {
  return { kty: 'RSA', n, e, kid: computeThumbprint({ kty: 'RSA', n, e }), use: 'sig', alg: 'RS384' }
}
