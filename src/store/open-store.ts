import { checkSchema } from './check-schema.ts'
import { parseDatabaseUrl } from './database-url.ts'
import { migrate } from './run-migrations.ts'
import type { OpenedDatabase, Store, StoreOptions } from './store.ts'
import { describeUnavailable } from './unavailable.ts'

/** Rejects with one line that names the database and never its password. */
export async function openStore(databaseUrl: string, options: StoreOptions = {}): Promise<Store> {
  const target = parseDatabaseUrl(databaseUrl)
  if (target === undefined) throw new Error('Cannot open database: expected sqlite:<path> or postgres://…')
  const shownAs = target.dialect === 'sqlite' ? target.path : target.shownAs
  try {
    const store = await openTarget(target, options)
    return await migrated(store)
  } catch (cause) {
    throw new Error(`Cannot open database ${shownAs}: ${reasonOf(cause)}`, { cause })
  }
}

// Each database is imported on demand: a start on SQLite does not load `pg`.
async function openTarget(
  target: NonNullable<ReturnType<typeof parseDatabaseUrl>>,
  options: StoreOptions,
): Promise<OpenedDatabase> {
  switch (target.dialect) {
    case 'sqlite':
      return (await import('./sqlite/open.ts')).openSqlite(target.path, options)
    case 'postgres':
      return (await import('./postgres/open.ts')).openPostgres(target.url, options)
  }
}

async function migrated(store: OpenedDatabase): Promise<Store> {
  try {
    await migrate(store)
    await checkSchema(store)
    store.begin()
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

function reasonOf(cause: unknown): string {
  // A refused connection to a name with several addresses is an AggregateError without a message.
  const errors = cause instanceof AggregateError ? cause.errors : [cause]
  const first: unknown = errors[0]
  const message = first instanceof Error ? first.message : String(first)
  const description = describeUnavailable(first)
  return description === undefined ? message : `${description} (${message})`
}
