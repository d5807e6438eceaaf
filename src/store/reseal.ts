import { sql } from 'kysely'
import { createSealer, type SealedCell, type Sealer } from './sealer.ts'
import type { Store } from './store.ts'

const SEALED: readonly (Omit<SealedCell, 'row'> & { readonly id: string; readonly earlier: string })[] = [
  { table: 'signing_key', column: 'private_jwk_sealed', id: 'kid', earlier: 'signing-key' },
  { table: 'refresh_token', column: 'successor_sealed', id: 'token_hash', earlier: 'refresh-token' },
  { table: 'app_key', column: 'private_jwk_sealed', id: 'generation', earlier: 'app key' },
  {
    table: 'app_launch',
    column: 'code_verifier_sealed',
    id: 'state_hash',
    earlier: 'app launch code verifier',
  },
  { table: 'app_session', column: 'tokens_sealed', id: 'id_hash', earlier: 'app session tokens' },
]

/**
 * Values that an earlier version encrypted without binding them to their row are encrypted again first. Values
 * encrypted with another secret stay unchanged and cannot be decrypted.
 */
export async function openSealer(store: Store, secret: string): Promise<Sealer> {
  const seal = createSealer(secret)
  for (const column of SEALED) await reseal(store, seal, column)
  return seal
}

async function reseal({ db }: Store, seal: Sealer, { id, earlier, ...cell }: (typeof SEALED)[number]) {
  const [table, column, row] = [sql.table(cell.table), sql.ref(cell.column), sql.ref(id)]
  const { rows } = await sql<{ row: string | number; sealed: string }>`
    select ${row} as "row", ${column} as sealed from ${table} where ${column} like 'v1.%'`.execute(db)
  for (const found of rows) {
    const text = seal.tryOpen(found.sealed, earlier)
    if (text === undefined) continue
    const sealed = seal.seal(text, { ...cell, row: String(found.row) })
    // Another instance may have been first.
    await sql`update ${table} set ${column} = ${sealed} where ${column} = ${found.sealed}`.execute(db)
  }
}
