import { join } from 'node:path'
import type { Transaction } from 'kysely'
import { createAuditor, noAudit } from '../audit/index.ts'
import { readConfiguration, type Settings } from '../config/index.ts'
import { makeFolder, openStore, type Schema, type Store } from '../store/index.ts'
import type { Io } from './command.ts'

export function loadSettings(io: Io): Settings {
  const { settings, warnings } = readConfiguration(io.env, io.cwd)
  for (const warning of warnings) io.stderr.write(`${warning}\n`)
  return settings
}

export function openConfiguredStore({ databaseUrl, database, audit }: Settings): Promise<Store> {
  return openStore(databaseUrl, {
    poolSize: database.poolSize,
    connectTimeoutMs: database.connectTimeoutSeconds * 1000,
    statementTimeoutMs: database.statementTimeoutSeconds * 1000,
    auditRequired: audit.kept && audit.failure === 'refuse',
  })
}

export async function withStore<T>(io: Io, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openConfiguredStore(loadSettings(io))
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/**
 * The change and its audit record are one transaction. The record contains the command and its subject, no other
 * arguments.
 */
export function administer<T>(
  io: Io,
  command: string,
  change: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return withStore(io, store =>
    store.db.transaction().execute(async trx => {
      const result = await change(trx)
      await recordCommand(io, store, command)(trx)
      return result
    }),
  )
}

export function recordCommand(io: Io, store: Store, command: string) {
  const { audit } = readConfiguration(io.env, io.cwd).settings
  const { recordIn } = audit.kept ? createAuditor({ store, failure: audit.failure }) : noAudit
  return (trx: Transaction<Schema>): Promise<void> =>
    recordIn(trx, {
      ...{ at: Date.now(), server: 'auth', kind: 'admin', allowed: true, status: 200 },
      ...{ method: 'sallyport', request: command },
    })
}

export function findDataFile({ dataDir }: Settings): string {
  makeFolder(dataDir)
  return join(dataDir, 'fhir.db')
}
