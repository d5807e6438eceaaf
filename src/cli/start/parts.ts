import { ensureSecret, type Settings } from '../../config/index.ts'
import { openStore, type Sealer, type Store, sealer, startSweeping } from '../../store/index.ts'
import type { Logger } from '../../web/index.ts'
import type { Closing } from './closing.ts'
import type { Tls } from './tls.ts'

/** What all servers of a process have in common. */
export interface Parts {
  readonly settings: Settings
  readonly logger: Logger
  readonly tls: Tls | undefined
}

/** What auth and app keep. The FHIR server has its own file. */
export interface Keeping {
  readonly store: Store
  readonly sealer: Sealer
}

/** Opens the database, and removes what expires in it while the servers run (contract 2). */
export async function openKeeping({ settings, logger }: Parts, closing: Closing): Promise<Keeping> {
  const secret = ensureSecret(settings)
  const store = await openStore(settings.databaseUrl)
  closing.add(() => store.close())
  const sweeping = startSweeping(store, {
    onError: error => logger.warn({ err: error }, 'Cannot remove expired rows'),
  })
  closing.add(() => sweeping.stop())
  return { store, sealer: sealer(secret) }
}
