import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Transaction } from 'kysely'
import { type Auditor, createAuditor, noAudit } from '../audit/index.ts'
import type { Admin, AdminFailure } from '../auth/index.ts'
import { ensureSecret, readConfiguration, type Settings } from '../config/index.ts'
import { isFailure } from '../core/index.ts'
import {
  createSealer,
  makeFolder,
  openStore,
  type Schema,
  type Sealer,
  type Store,
  type StoreOptions,
} from '../store/index.ts'
import { CommandFailure, type Io } from './command.ts'
import { findOperator } from './operator.ts'

export function loadSettings(io: Io): Settings {
  const { settings, warnings } = readConfiguration(io.env, io.cwd)
  for (const warning of warnings) io.stderr.write(`${warning}\n`)
  return settings
}

/** A command that was run in the wrong folder finds nothing: a new data folder shows why. */
export function noteNewFolder({ dataDir, databaseUrl }: Settings, io: Io): void {
  const isInFolder = databaseUrl.startsWith(`sqlite:${resolve(dataDir)}`)
  if (isInFolder && !existsSync(dataDir)) io.stderr.write(`New data folder: ${resolve(dataDir)}\n`)
}

export function openConfiguredStore(settings: Settings, more: StoreOptions = {}): Promise<Store> {
  return openStore(settings.databaseUrl, { ...getStoreOptions(settings), ...more })
}

export function getStoreOptions({ database, audit }: Settings): StoreOptions {
  return {
    poolSize: database.poolSize,
    connectTimeoutMs: database.connectTimeoutSeconds * 1000,
    statementTimeoutMs: database.statementTimeoutSeconds * 1000,
    auditRequired: audit.kept && audit.failure === 'refuse',
  }
}

export async function withStore<T>(
  io: Io,
  use: (store: Store, settings: Settings) => Promise<T>,
): Promise<T> {
  const settings = loadSettings(io)
  noteNewFolder(settings, io)
  await using store = await openConfiguredStore(settings)
  return await use(store, settings)
}

export async function withSealer<T>(
  settings: Settings,
  use: (store: Store, sealer: Sealer) => Promise<T>,
): Promise<T> {
  await using store = await openConfiguredStore(settings)
  return await use(store, createSealer(ensureSecret(settings)))
}

export function openAuditor({ audit }: Settings, store: Store): Auditor {
  return audit.kept ? createAuditor({ store, failure: audit.failure }) : noAudit
}

/**
 * Performs an operation of the administration as the command line. `refusal` begins the line of a failure: `Cannot add
 * client growth`.
 */
export async function performCommand<T>(
  io: Io,
  refusal: string,
  operate: (admin: Admin, sealer: () => Sealer) => Promise<T | AdminFailure>,
): Promise<T> {
  const { makeCommandLine, makeRules } = await import('../auth/index.ts')
  const result = await withStore(io, (store, settings) => {
    const rules = makeRules(settings, () => settings.login)
    const audit = openAuditor(settings, store)
    const admin = { store, audit, clock: Date.now, rules, settings, ...makeCommandLine(findOperator(io)) }
    return operate(admin, () => createSealer(ensureSecret(settings)))
  })
  if (isFailure<Awaited<T> | AdminFailure, AdminFailure>(result))
    throw new CommandFailure(
      `${refusal}: ${result.text}`,
      result.code === 'invalid' && result.reason !== 'filter-unknown' ? 2 : 1,
    )
  return result
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
  const perform = (store: Store) =>
    store.db.transaction().execute(async trx => {
      const result = await change(trx)
      await recordCommand(io, store, command)(trx)
      return result
    })
  return withStore(io, perform)
}

export function recordCommand(io: Io, store: Store, command: string) {
  const { recordIn } = openAuditor(readConfiguration(io.env, io.cwd).settings, store)
  return (trx: Transaction<Schema>): Promise<void> =>
    recordIn(trx, {
      at: Date.now(),
      server: 'auth',
      kind: 'admin',
      allowed: true,
      status: 200,
      method: 'sallyport',
      request: command,
      address: findOperator(io),
    })
}

/** The file of the embedded FHIR server, which may not exist. */
export function nameDataFile({ dataDir }: Settings): string {
  return join(dataDir, 'fhir.db')
}

/** The file of the embedded FHIR server, in a folder that exists. */
export function prepareDataFile(settings: Settings): string {
  makeFolder(settings.dataDir)
  return nameDataFile(settings)
}
