import { after, before, describe } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import type { Store } from '../../store/index.ts'
import { findRecords, type KeptRecord } from '../index.ts'
import { type Ask, openAudited, seed } from './audited-fhir.ts'

interface Audited {
  readonly ask: Ask
  recordsBy(options: Parameters<typeof findRecords>[1]): ReturnType<typeof findRecords>
  newest(): Promise<KeptRecord | undefined>
  /** Stores the counts: the next anonymous request is the first of its kind. */
  flush(): Promise<void>
}

export function describeAudited(title: string, define: (audited: Audited) => void): void {
  eachDatabase((_name, openStore) => {
    describe(title, () => {
      let store: Store
      let server: Awaited<ReturnType<typeof openAudited>>
      before(async () => {
        store = await openStore()
        server = await openAudited(store)
        await seed(server.ask)
      })
      after(() => server.app.close())

      define({
        ask: (...line) => server.ask(...line),
        flush: () => server.flush(),
        recordsBy: options => findRecords(store, options),
        newest: async () => (await findRecords(store, { limit: 1 }))[0],
      })
    })
  })
}
