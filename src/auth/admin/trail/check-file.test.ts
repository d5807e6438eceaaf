import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { isFailure } from '../../../core/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { makeCommandLine } from '../base/action.ts'
import { exportRecords } from './audit.ts'
import { checkFile } from './check-file.ts'

eachDatabase((_name, open) => {
  describe('a check of an exported file', () => {
    let auth: TestAuthServer
    let admin: TestBrowser
    before(async () => {
      const store = await open()
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
      await auth.addUser('ada', { admin: true, display_name: 'Ada "quoted", =1' })
      for (let count = 0; count < 3; count++) await auth.exchange(await auth.getCode(await auth.logIn()))
      admin = await auth.logIn('ada')
      await admin.post('/login', { username: 'ada', password: '=wrong,\n"' })
    })

    const download = async (format: 'ndjson' | 'csv') =>
      (await admin.get(`/admin/audit/export.${format}`)).body
    const upload = (content: string, browser = admin) => {
      const payload = `--a-boundary-of-the-test\r\ncontent-disposition: form-data; name="file"; filename="audit"\r\n\r\n${content}\r\n--a-boundary-of-the-test--\r\n`
      const cookie = [...browser.cookies].map(pair => pair.join('=')).join('; ')
      const headers = { 'content-type': 'multipart/form-data; boundary=a-boundary-of-the-test', cookie }
      return auth.app.inject({ method: 'POST', url: '/admin/audit/check-file', payload, headers })
    }
    const commandLine = () => {
      const { store, time, rules } = auth
      const audit = createAuditor({ store })
      return { store, audit, clock: () => time.now, rules, ...makeCommandLine('tester@test') }
    }
    const check = async (...parts: readonly string[]) => {
      const checked = await checkFile(commandLine(), parts, auth.settings)
      return isFailure(checked) ? checked.sentence : checked
    }
    const nothing = { count: 0, first: [] }

    for (const format of ['ndjson', 'csv'] as const)
      it(`accepts ${format} that says at its end that older records are missing (ADMIN-8)`, async () => {
        const parts = await exportRecords(commandLine(), format, {
          ...auth.settings,
          meant: {},
          unknown: [],
          most: 2,
        })
        assert.ok(!isFailure(parts))
        let file = ''
        for await (const part of parts) file += part
        const [last = ''] = file.trimEnd().split('\n').slice(-1)
        assert.match(
          last,
          /Incomplete: this file has the newest 2 records\. For older ones, export again with \d{4}-\d\d-\d\d as the last day/,
        )
        assert.deepEqual(await check(file), {
          ...{ format, records: 2, unchanged: 2 },
          ...{ changed: nothing, expired: nothing, missing: nothing },
        })
        assert.doesNotMatch(await download(format), /Incomplete/)
      })

    for (const format of ['ndjson', 'csv'] as const)
      it(`finds every record of ${format} unchanged, also after the user was renamed and removed (ADMIN-27)`, async () => {
        await auth.addUser(`leaver-${format}`)
        await auth.logIn(`leaver-${format}`)
        const file = await download(format)
        await auth.store.db.deleteFrom('clinician').where('username', '=', `leaver-${format}`).execute()
        const lines = file.trimEnd().split('\n').length
        const records = format === 'csv' ? lines - 1 : lines
        const parts = file.match(/[\s\S]{1,50}/g) ?? []
        const expected = {
          format,
          records,
          unchanged: records,
          changed: nothing,
          expired: nothing,
          missing: nothing,
        }
        assert.deepEqual(await check(...parts), expected)
        assert.deepEqual(await check(`\uFEFF${file}`), expected)
        const page = await upload(file)
        assert.equal(page.statusCode, 200)
        assert.match(page.body, /The file agrees with the trail/)
        const [record] = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 })
        assert.equal(record?.request, 'audit check-file')
        assert.match(record?.details ?? '', new RegExp(`"unchanged":${records}`))
      })

    it('tells records that differ, are not there, or are older than those that are kept (ADMIN-27)', async () => {
      const [csv, ndjson] = [await download('csv'), await download('ndjson')]
      const rows = csv.trimEnd().split('\r\n')
      const number = Number(rows[1]?.split(',')[0])
      const forged = [...rows]
      forged[1] = rows[1]?.replace(/,200,|,30\d,/, ',999,') ?? ''
      forged.push((rows[1] ?? '').replace(/^\d+/, '99999999'))
      const changed = await check(forged.join('\r\n'))
      assert.ok(typeof changed === 'object')
      assert.deepEqual(changed.changed, { count: 1, first: [{ id: String(number), differs: ['status'] }] })
      assert.deepEqual(changed.missing, { count: 1, first: [{ id: '99999999' }] })
      const [first = '', ...events] = ndjson.trimEnd().split('\n')
      const other = JSON.stringify({ ...JSON.parse(first), id: 'f'.repeat(32) })
      const moved = await check(
        [first.replace(/"outcome":"\d"/, '"outcome":"8"'), other, ...events].join('\n'),
      )
      assert.ok(typeof moved === 'object')
      assert.deepEqual(
        [moved.changed.first[0]?.differs, moved.missing.first],
        [['outcome'], [{ id: 'f'.repeat(32) }]],
      )
      const page = await upload(forged.join('\r\n'))
      assert.match(page.body, /The file differs from the trail[\s\S]*Record \d+<\/a>: status[\s\S]*99999999/)

      const trail = await auth.store.trail.read()
      const oldest = await trail.selectFrom('audit_event').select('id').orderBy('id').limit(2).execute()
      await trail
        .deleteFrom('audit_event')
        .where(
          'id',
          'in',
          oldest.map(({ id }) => id),
        )
        .execute()
      const aged = await check(csv)
      assert.ok(typeof aged === 'object')
      assert.deepEqual([aged.expired.count, aged.missing.count, aged.changed.count], [2, 0, 0])
    })

    it('refuses other files with the line, and files above the limit, and writes nothing then (ADMIN-27)', async () => {
      const last = async () => (await findRecords(auth.store, { limit: 1 }))[0]?.id
      const before = await last()
      for (const text of ['', 'name,age\r\nx,1\r\n', 'hello', '<html>', '[]'])
        assert.match(String(await check(text)), /not an export of the audit trail/, text)
      assert.match(String(await check('{"resourceType":"Patient"}\n')), /Line 1 is not a record/)
      const ndjson = (await download('ndjson')).split('\n')[0] ?? ''
      assert.match(String(await check(`${ndjson}\n{"broken\n`)), /Line 2 is not a record/)
      assert.match(String(await check('id,status\r\n1\r\n')), /Line 2 is not a record/)
      const refused = await upload('hello')
      assert.deepEqual([refused.statusCode, /The file was not checked/.test(refused.body)], [422, true])
      const large = await upload('x'.repeat(LIMITS.exportedFileBytes))
      assert.equal(large.statusCode, 413)
      assert.match(large.body, /larger than 8388608 bytes/)
      await auth.addUser('plain')
      assert.equal((await upload('hello', await auth.logIn('plain'))).statusCode, 403)
      const checks = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 10 })
      assert.ok(
        before !== undefined &&
          !checks.some(it => it.id > before && Boolean(it.allowed) && it.request === 'audit check-file'),
      )
    })
  })
})
