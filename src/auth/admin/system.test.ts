import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import type { LogLevel } from '../../config/index.ts'
import { NO_CONTROLS } from '../base/context.ts'
import { announce, followAnnouncements } from './system.ts'

eachDatabaseIfThorough((_, open) => {
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
