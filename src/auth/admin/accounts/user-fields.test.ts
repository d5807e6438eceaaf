import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sallyport } from '../../../../test/support/command-line.ts'
import type { JsonSchema } from '../../../endpoint/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { toWords } from '../base/describe-change.ts'
import { ACCOUNT_AREA, CLINICIAN_AREA } from './api.ts'
import { listPlainFields, TEXTS, USER_FIELDS, type UserKind } from './user-fields.ts'
import { USER_COLUMNS } from './user-list.ts'

const KINDS: readonly UserKind[] = ['clinician', 'account']

describe('every property of an account', () => {
  const open = openTestStore()

  it('is a member of the API of its kind, and of no other (ADMIN-5)', () => {
    const listMembers = (path: string, method: string) => {
      const endpoints = [CLINICIAN_AREA, ACCOUNT_AREA].flatMap(area => area.endpoints ?? [])
      const { body } = endpoints.find(one => one.path === path && one.method === method) ?? {}
      const { properties = {} }: JsonSchema = body ?? {}
      return Object.keys(properties)
    }
    for (const kind of KINDS)
      for (const field of Object.values<{ member: string; of?: UserKind; when?: 'add' | 'set' }>(
        USER_FIELDS,
      )) {
        const isOwn = (field.of ?? kind) === kind
        const added = listMembers(`/${kind}s`, 'POST').includes(field.member)
        const set = listMembers(`/${kind}s/:id`, 'PATCH').includes(field.member)
        assert.deepEqual(
          [added, set],
          [isOwn && field.when !== 'set', isOwn && field.when !== 'add'],
          `${kind} ${field.member}`,
        )
        assert.ok(Object.hasOwn(USER_COLUMNS, field.member), field.member)
      }
  })

  it('has an option of the commands, with its help, if it has one', async () => {
    for (const kind of KINDS)
      for (const verb of ['add', 'set']) {
        const { stdout } = await sallyport([kind, verb, '--help'], { env: {} })
        for (const { option, help = '', helpNot = '', kind: type } of listPlainFields(kind)) {
          if (option === undefined) continue
          const text = stdout.replace(/\s+/g, ' ')
          assert.ok(
            text.includes(`--${option}${type === 'text' ? ' <text>' : ''} ${help}`),
            `${kind} ${verb} ${option}`,
          )
          if (type === 'flag' && verb === 'set') assert.ok(text.includes(`--no-${option} ${helpNot}`), option)
        }
      }
  })

  it('that is a text has a field in the forms, and a name in the records of changes', async () => {
    const auth = await TestAuthServer.open(await open())
    await auth.addUser('ada', { admin: true })
    const browser = await auth.logIn('ada')
    const { id } = await auth.store.db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'ada')
      .executeTakeFirstOrThrow()
    for (const path of ['/admin/clinicians/new', `/admin/clinicians/${id}`]) {
      const { body } = await browser.get(path)
      for (const { property, label } of TEXTS) {
        assert.match(body, new RegExp(`<label[^>]*>${label}`), `${path} ${label}`)
        assert.match(body, new RegExp(`name="${property}"`), `${path} ${property}`)
        assert.match(toWords(property), /^[a-z ]+$/)
      }
    }
  })
})
