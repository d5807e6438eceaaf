import { readConfiguration, type Settings } from '../config/index.ts'
import { openStore, type Store } from '../store/index.ts'
import type { Io } from './command.ts'

/** The settings of this call; what there is to warn of is said on stderr. */
export function settingsOf(io: Io): Settings {
  const { settings, warnings } = readConfiguration(io.env, io.cwd)
  for (const warning of warnings) io.stderr.write(`${warning}\n`)
  return settings
}

/** Opens the database of the settings (it is made and migrated where needed), and closes it again. */
export async function withStore<T>(io: Io, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(settingsOf(io).databaseUrl)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}
