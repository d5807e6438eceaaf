import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { type LogLevel, readSettings, type Settings } from '../../../config/index.ts'
import { announce, followAnnouncements } from '../../base/announcements.ts'
import { NO_CONTROLS } from '../../base/context.ts'
import { testSettings } from '../../testing/settings.ts'
import { makeRules } from '../../users/validity/rule.ts'
import { makeCommandLine } from '../base/action.ts'
import { reloadHere, reloadSettings } from './system.ts'

eachDatabaseIfThorough((_, open) => {
  it('records the settings that a reload changed, before and after (ADMIN-3)', async () => {
    const store = await open()
    let login: Settings['login'] = { ...testSettings.login, secondFactor: 'all' }
    const controls = {
      ...NO_CONTROLS,
      reload: async () => {
        login = { ...login, secondFactor: 'none' }
        return { changed: [], needRestart: [] }
      },
    }
    const rules = makeRules(testSettings, () => login)
    const audit = createAuditor({ store })
    const admin = { store, rules, clock: Date.now, audit, ...makeCommandLine('root@vm') }
    await reloadSettings(admin, controls)
    await reloadSettings(admin, controls)
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

  it('records who may sign in by a provider, and a reload by a signal, without secrets (ADMIN-3)', async () => {
    const store = await open()
    const provider = { id: 'staff', issuer: 'https://idp.test', 'client-id': 'c', 'client-secret': 'hidden' }
    const readLogin = (values: readonly string[]) => {
      const allow = { claim: 'groups', values }
      const file = JSON.stringify({ 'smart.login.providers': [{ ...provider, allow }] })
      const folder = mkdtempSync(join(tmpdir(), 'reload-'))
      writeFileSync(join(folder, 'sallyport.yaml'), file)
      const { login } = readSettings({}, folder)
      rmSync(folder, { recursive: true })
      return login
    }
    let login = readLogin(['ward'])
    const controls = {
      ...NO_CONTROLS,
      reload: async () => {
        login = readLogin(['ward', 'everyone'])
        return { changed: [], needRestart: [] }
      },
    }
    const audit = createAuditor({ store })
    const rules = makeRules(testSettings, () => login)
    const admin = { store, rules, clock: Date.now, audit, ...makeCommandLine('sallyport@vm') }
    await reloadHere(admin, controls, 'SIGHUP')
    const records = await findRecords(store, { events: [{ kind: 'admin' }], limit: 9, order: 'oldest' })
    assert.deepEqual(
      records.map(({ request, address }) => [request, address]),
      [
        ['settings reload SIGHUP', 'sallyport@vm'],
        ['settings changed', 'sallyport@vm'],
      ],
    )
    const { before, after } = JSON.parse(records[1]?.details ?? '')
    assert.deepEqual(before.providers[0].allow, { claim: 'groups', values: ['ward'] })
    assert.deepEqual(after.providers[0].allow, { claim: 'groups', values: ['ward', 'everyone'] })
    assert.doesNotMatch(JSON.stringify(records), /hidden/)
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
          return { changed: [], needRestart: [] }
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
