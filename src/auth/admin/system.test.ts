import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../audit/index.ts'
import type { LogLevel } from '../../config/index.ts'
import { NO_CONTROLS } from '../base/context.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import { createProviders } from '../users/providers/providers.ts'
import { makeCommandLine } from './action.ts'
import { announce, followAnnouncements, reloadSettings } from './system.ts'

eachDatabaseIfThorough((_, open) => {
  it('records the settings that a reload changed, before and after (ADMIN-3)', async () => {
    const store = await open()
    const { rules } = await TestAuthServer.open(store)
    let login: Parameters<typeof createProviders>[0] = {
      order: [],
      passwords: true,
      secondFactor: 'all',
      providers: [],
    }
    const create = () => createProviders(login, { clock: Date.now, onFailure: () => undefined })
    const context = {
      get providers() {
        return create()
      },
      controls: {
        ...NO_CONTROLS,
        reload: async () => {
          login = { ...login, secondFactor: 'none' }
          return { needRestart: [] }
        },
      },
    }
    const admin = {
      store,
      rules,
      clock: Date.now,
      audit: createAuditor({ store }),
      ...makeCommandLine('root@vm'),
    }
    await reloadSettings(admin, context)
    await reloadSettings(admin, context)
    const records = await findRecords(store, { events: [{ kind: 'admin' }], limit: 9, order: 'oldest' })
    assert.deepEqual(
      records.map(({ request, details }) => [request, details && JSON.parse(details)]),
      [
        ['settings reload', null],
        ['settings changed', { before: { secondFactor: 'all' }, after: { secondFactor: 'none' } }],
        ['settings reload', null],
      ],
    )
  })

  describe('an instance', () => {
    it('repeats a reload and a log level of another instance, but none from before its start (ADMIN-9)', async () => {
      const store = await open()
      await announce(store, 'reload', 'earlier', 1)
      const { promise, resolve } = Promise.withResolvers<void>()
      const done: string[] = []
      const controls = {
        ...NO_CONTROLS,
        reload: async () => {
          done.push('reload')
          return { needRestart: [] }
        },
        setLogLevel: async (level: LogLevel) => {
          done.push(level)
          resolve()
        },
      }
      const { stop } = await followAnnouncements(store, controls, { everyMs: 20, onError: assert.ifError })
      await announce(store, 'reload', 'later', 2)
      await announce(store, 'log-level', 'debug', 2)
      await promise
      await stop()
      assert.deepEqual(done.toSorted(), ['debug', 'reload'])
    })
  })
})
