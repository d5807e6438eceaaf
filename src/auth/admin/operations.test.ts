import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../audit/index.ts'
import { sweep } from '../../store/index.ts'
import { findClient } from '../oauth/clients/client.ts'
import { computeRevocationKey } from '../oauth/revocation/list.ts'
import { decodeClaims, TestAuthServer } from '../testing/test-auth-server.ts'
import { listGrants, listServices, revokeGrantById } from './access/grants.ts'
import { findLastUse } from './access/last-use.ts'
import { endSessions, setPassword } from './accounts/change-sign-in.ts'
import { addUser, changeUser, removeUser } from './accounts/change-user.ts'
import { linkUser, unlinkUser } from './accounts/link-user.ts'
import { endSignInById, listSignIns } from './accounts/sign-ins.ts'
import { findUser, listUsers } from './accounts/users.ts'
import { changeByMetadata, registerByMetadata } from './apps/client-metadata.ts'
import {
  approveClient,
  changeClient,
  describeClient,
  findClientRow,
  listClients,
  removeClient,
  rotateClientSecret,
  setClientDisabled,
} from './apps/clients.ts'
import { type Admin, AdminFailure } from './base/action.ts'
import { KEYS, listKeys } from './server/keys.ts'
import { toJson } from './subject/columns.ts'

const APP = {
  client_id: 'growth',
  redirect_uris: ['https://growth.example/callback'],
  scope: 'launch openid offline_access patient/*.rs',
  token_endpoint_auth_method: 'client_secret_basic' as const,
}

function succeed<T>(result: T | AdminFailure): T {
  assert(!(result instanceof AdminFailure), result instanceof AdminFailure ? result.reason : '')
  return result
}

function fail(result: unknown): string {
  assert(result instanceof AdminFailure)
  return result.code
}

eachDatabaseIfThorough((_, open) => {
  describe('an administrator', () => {
    let auth: TestAuthServer
    let admin: Admin
    before(async () => {
      const store = await open()
      const audit = createAuditor({ store })
      auth = await TestAuthServer.open(store, { audit })
      admin = {
        store,
        audit,
        clock: () => auth.time.now,
        rules: auth.rules,
        actor: { kind: 'client', id: 'console' },
        mayAct: async () => true,
      }
    })
    const lastChange = async () => {
      const row = await (await auth.store.trail.read())
        .selectFrom('audit_event')
        .selectAll()
        .where('kind', '=', 'admin')
        .orderBy('id', 'desc')
        .executeTakeFirstOrThrow()
      const details = JSON.parse(row.details ?? '{}')
      return {
        action: `${row.method} ${row.request}`,
        client: row.client_id,
        subject: row.subject,
        ...details,
      }
    }

    it('registers, changes, rotates, disables and removes a client, each with an audit record (ADMIN-3)', async () => {
      const { client, secret } = succeed(await registerByMetadata(admin, APP))
      assert.deepEqual(
        [client.approved, client.auth_method, typeof secret],
        [true, 'client_secret', 'string'],
      )
      const added = await lastChange()
      assert.deepEqual(
        [added.action, added.client, added.before],
        ['admin-api client add growth', 'console', undefined],
      )
      assert.equal(added.after.scope, APP.scope)

      succeed(await changeByMetadata(admin, 'growth', { client_name: 'Growth', description: 'Charts' }))
      const { action, ...changed } = await lastChange()
      assert.equal(action, 'admin-api client set growth')
      assert.deepEqual(changed.before, { client_name: 'growth', description: null })
      assert.deepEqual(changed.after, { client_name: 'Growth', description: 'Charts' })

      const rotated = succeed(await rotateClientSecret(admin, 'growth'))
      assert.notEqual(rotated.secret, secret)
      assert.deepEqual((await lastChange()).after, { secret: 'replaced' })
      const page = await listClients(admin, { text: 'GROW', limit: 10 })
      assert.deepEqual(
        page.items.map(row => describeClient(row).client_name),
        ['Growth'],
      )

      succeed(await setClientDisabled(admin, 'growth', true))
      assert.deepEqual((await lastChange()).after, { disabled: true })
      succeed(await removeClient(admin, 'growth'))
      assert.equal((await lastChange()).before.client_name, 'Growth')
      assert.equal(fail(await approveClient(admin, 'growth')), 'not_found')
      const { details } = await (await auth.store.trail.read())
        .selectFrom('audit_event')
        .select(({ fn }) => fn.agg<string>('max', ['details']).as('details'))
        .executeTakeFirstOrThrow()
      assert.doesNotMatch(details, new RegExp(`${secret}|${rotated.secret}|secret_hash`))
    })

    it('records in words which members of an app or a user changed, and the role (ADMIN-3)', async () => {
      const lastReason = async () =>
        (await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 }))[0]?.reason
      const user = {
        kind: 'clinician',
        username: 'rolf',
        displayName: 'Rolf',
        fhirUser: 'Practitioner/r',
      } as const
      succeed(await addUser(admin, { ...user, admin: true }))
      assert.equal(await lastReason(), 'Role: administrator')
      succeed(await changeUser(admin, { username: 'rolf' }, { admin: false }))
      assert.equal(await lastReason(), 'Role: administrator → user')
      succeed(
        await changeUser(
          admin,
          { username: 'rolf' },
          { admin: true, displayName: 'R', fhirUser: 'Practitioner/q' },
        ),
      )
      assert.equal(await lastReason(), 'Role: user → administrator. Changed: display name, FHIR user')
      succeed(await changeUser(admin, { username: 'rolf' }, { disabled: true }))
      assert.equal(await lastReason(), null)
      succeed(await registerByMetadata(admin, { ...APP, client_id: 'worded' }))
      const redirectUris = ['https://worded.example/callback']
      succeed(await changeClient(admin, 'worded', { name: 'Worded', redirectUris }))
      assert.equal(await lastReason(), 'Changed: client name, redirect URIs')
      succeed(await removeUser(admin, { username: 'rolf' }))
      succeed(await removeClient(admin, 'worded'))
    })

    it('removes an app with many grants at once, and leaves its rows to the sweep', async () => {
      const { db } = auth.store
      succeed(await registerByMetadata(admin, { ...APP, client_id: 'popular' }))
      const { id: clinician_id } = await db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
      const common = { client_id: 'popular', clinician_id, scope: '', auth_time: 1, created_at: 1 }
      for (let from = 0; from < 1_200; from += 400)
        await db
          .insertInto('grant')
          .values(
            Array.from({ length: 400 }, (_, at) => ({
              ...common,
              id: `popular-${from + at}`,
              last_used_at: 1,
            })),
          )
          .execute()
      const grants = () => db.selectFrom('grant').select('id').where('client_id', '=', 'popular').execute()

      assert.equal(fail(await removeUser(admin, { id: clinician_id })), 'conflict')
      succeed(await removeClient(admin, 'popular'))
      assert.equal((await grants()).length, 1_200)
      assert.equal(fail(await approveClient(admin, 'popular')), 'not_found')
      assert.equal(fail(await removeClient(admin, 'popular')), 'not_found')
      assert.deepEqual((await listClients(admin, { text: 'popular', limit: 10 })).items, [])
      assert.equal(await findClient(db, admin, 'popular'), undefined)

      await sweep(auth.store, admin.clock())
      assert.deepEqual(await grants(), [])
      succeed(await registerByMetadata(admin, { ...APP, client_id: 'popular' }))
    })

    it('disables an app, which becomes unknown and loses its tokens, and restores no access when enabling it (ADMIN-5)', async () => {
      succeed(
        await registerByMetadata(admin, {
          ...APP,
          client_id: 'app',
          first_party: true,
          initiate_login_uri: 'https://app.example/launch',
          redirect_uris: ['https://app.example/callback'],
          token_endpoint_auth_method: 'none',
        }),
      )
      const clinician = await auth.logIn()
      const query = {
        client_id: 'app',
        redirect_uri: 'https://app.example/callback',
        scope: 'launch offline_access patient/*.rs',
      }
      const code = await auth.getCode(clinician, query)
      const tokens = (await auth.exchange(code, query)).json()
      assert.ok(tokens.refresh_token, JSON.stringify(tokens))
      const { items } = await listGrants(admin, { clientIds: ['app'], limit: 5 })
      assert.deepEqual([items.length, items[0]?.username, items[0]?.endsAt], [1, 'clinician', undefined])
      assert.equal(await findLastUse(admin, 'app'), auth.time.now)

      succeed(await setClientDisabled(admin, 'app', true))
      assert.equal(
        (await auth.refresh(tokens.refresh_token, { client_id: 'app' })).json().error,
        'invalid_client',
      )
      assert.equal((await auth.authorize(clinician, query)).statusCode, 400)
      assert.deepEqual((await listGrants(admin, { clientIds: ['app'], limit: 5 })).items, [])
      succeed(await setClientDisabled(admin, 'app', false))
      assert.equal(
        (await auth.refresh(tokens.refresh_token, { client_id: 'app' })).json().error,
        'invalid_grant',
      )
    })

    it('revokes a grant once', async () => {
      const browser = await auth.logIn()
      await auth.exchange(await auth.getCode(browser))
      const [{ id: userId } = { id: '' }] = (await listUsers(admin, { text: 'clinician', limit: 1 })).items
      const [grant] = (await listGrants(admin, { userIds: [userId], limit: 1 })).items
      succeed(await revokeGrantById(admin, grant?.id ?? ''))
      assert.equal((await lastChange()).before.client_id, 'sallyport-app')
      assert.equal(fail(await revokeGrantById(admin, grant?.id ?? '')), 'not_found')
    })

    it('removes a user with all sign-ins and access, and keeps the tokens revoked (ADMIN-3)', async () => {
      await auth.addUser('leaver')
      const browser = await auth.logIn('leaver')
      const { access_token } = (await auth.exchange(await auth.getCode(browser))).json()
      const removed = succeed(await removeUser(admin, { username: 'leaver' }))
      assert.deepEqual((await lastChange()).action, 'admin-api clinician remove leaver')
      assert.equal((await browser.get('/portal')).headers.location, '/login')
      const { revoked } = (await browser.get('/oauth2/revocations')).json()
      const [issuedFor = ''] = String(decodeClaims(access_token).jti).split('.')
      assert.ok(revoked.includes(computeRevocationKey(issuedFor)))
      const rows = auth.store.db.selectFrom('grant').select('id').where('clinician_id', '=', removed.id)
      assert.deepEqual(await rows.execute(), [])
      assert.equal(fail(await removeUser(admin, { username: 'leaver' })), 'not_found')
    })

    it('lists and ends the sign-ins of everybody, in pages, and lists apps that need no user (ADMIN-3)', async () => {
      const browsers = [await auth.logIn(), await auth.logIn(), await auth.logIn()]
      const { items, next } = await listSignIns(admin, { limit: 100 })
      const { length } = items
      assert.equal(next, undefined)
      assert.ok(length >= browsers.length)
      const listed: (typeof items)[number][] = []
      let after: string | undefined
      do {
        const page = await listSignIns(admin, { after, limit: 2 })
        listed.push(...page.items)
        after = page.next
      } while (after !== undefined)
      assert.equal(new Set(listed.map(({ id }) => id)).size, length)
      const userIds = [listed[0]?.userId ?? '']
      assert.ok((await listSignIns(admin, { userIds, limit: 10 })).items.length > 0)
      assert.deepEqual((await listSignIns(admin, { userIds: [], limit: 10 })).items, [])
      for (const { id } of listed) succeed(await endSignInById(admin, id))
      assert.equal((await browsers[0]?.get('/portal'))?.headers.location, '/login')
      assert.equal(fail(await endSignInById(admin, listed[0]?.id ?? '')), 'not_found')

      const service = { name: 'Nightly', scope: 'launch system/*.rs' }
      await auth.addClient({ client_id: 'nightly', auth_method: 'private_key_jwt', ...service })
      await auth.addClient({ client_id: 'with-secret', auth_method: 'client_secret', ...service })
      const services = await listServices(admin, { usesFhir: true })
      assert.deepEqual(services, [
        { clientId: 'nightly', clientName: 'Nightly', scope: 'system/*.rs', opensEvery: true },
      ])
      await setClientDisabled(admin, 'nightly', true)
      assert.deepEqual(await listServices(admin, { usesFhir: true }), [])
    })

    it('lists grants and clients in pages', async () => {
      const browser = await auth.logIn()
      for (let count = 0; count < 3; count++) await auth.exchange(await auth.getCode(browser))
      const seen: string[] = []
      let after: string | undefined
      do {
        const page = await listGrants(admin, { clientIds: ['sallyport-app'], limit: 2, after })
        seen.push(...page.items.map(({ id }) => id))
        after = page.next
      } while (after !== undefined)
      assert.ok(seen.length >= 3)
      assert.equal(new Set(seen).size, seen.length)
      const first = await listClients(admin, { limit: 1 })
      const second = await listClients(admin, { limit: 1, after: first.next })
      assert.notEqual(first.items[0]?.client_id, second.items[0]?.client_id)
    })

    it('adds, links, disables and enables a clinician, and ends sessions (ADMIN-3)', async () => {
      const ada = succeed(
        await addUser(admin, {
          kind: 'clinician',
          username: 'ada',
          displayName: 'Dr. Ada',
          fhirUser: 'Practitioner/p7',
          password: 'correct horse',
        }),
      )
      const target = { id: ada.id }
      const { password } = succeed(await setPassword(admin, target, {}))
      assert.ok(password && password.length >= 20)
      assert.deepEqual((await lastChange()).after, { password: 'replaced' })
      succeed(await linkUser(admin, target, { issuer: 'https://idp.example', subject: 's-1' }))
      assert.deepEqual((await lastChange()).after.links, [{ issuer: 'https://idp.example', subject: 's-1' }])
      succeed(await unlinkUser(admin, target, { issuer: 'https://idp.example', subject: 's-1' }))
      succeed(await changeUser(admin, target, { disabled: true }))
      assert.equal((await lastChange()).action, 'admin-api clinician disable ada')
      succeed(await changeUser(admin, target, { disabled: false, admin: true }))
      assert.deepEqual((await lastChange()).after, { disabled: false, admin: true })
      assert.deepEqual(
        (await listUsers(admin, { admin: true, kind: 'clinician', limit: 5 })).items.map(
          ({ username }) => username,
        ),
        ['ada'],
      )

      const browser = await auth.logIn()
      const user = await findUser(admin, { username: 'clinician' })
      assert.ok(user && user.signIns > 0)
      assert.equal(succeed(await endSessions(admin, { id: user.id })).signIns, 0)
      assert.equal((await browser.get('/portal')).statusCode, 302)
    })

    it('finds users by a part of a name among thousands', async () => {
      const rows = Array.from({ length: 4_500 }, (_, at) => ({
        username: `u${at}`,
        display_name: at % 2_000 === 0 ? 'Rare' : 'Common',
        password_hash: 'h',
        fhir_user_id: `Practitioner/u${at}`,
      }))
      await auth.store.db.insertInto('clinician').values(rows).execute()
      const seen: string[] = []
      let after: string | undefined
      do {
        const page = await listUsers(admin, { text: 'rare', limit: 2, after })
        seen.push(...page.items.map(({ username }) => username))
        after = page.next
      } while (after !== undefined)
      assert.deepEqual(seen, ['u0', 'u2000', 'u4000'])
      assert.deepEqual((await listUsers(admin, { text: 'nobody', limit: 2 })).items, [])
    })

    it('loses no change of another administrator at the same time (ADMIN-3)', async () => {
      await registerByMetadata(admin, { ...APP, client_id: 'busy' })
      const fhirUser = 'Practitioner/b'
      const user = { kind: 'clinician', username: 'busy', displayName: 'Busy', fhirUser } as const
      const { id } = succeed(await addUser(admin, user))
      for (let round = 0; round < 8; round++) {
        const [disabled, scope] = [round % 2 === 0, `launch openid patient/${round % 2 ? '*' : 'Patient'}.rs`]
        await Promise.all([
          changeUser(admin, { id }, { displayName: `Busy ${round}` }),
          changeUser(admin, { id }, { disabled }),
          changeByMetadata(admin, 'busy', { client_name: `Busy ${round}` }),
          changeByMetadata(admin, 'busy', { scope }),
        ])
        const changed = await findUser(admin, { id })
        assert.deepEqual([changed?.displayName, changed?.disabled], [`Busy ${round}`, disabled])
        const { client_name, scope: stored } = describeClient(succeed(await findClientRow(admin, 'busy')))
        assert.deepEqual([client_name, stored], [`Busy ${round}`, scope])
      }
    })

    it('adds an account of a patient, who is never an administrator', async () => {
      const account = {
        kind: 'account',
        username: 'alba',
        displayName: 'Alba',
        fhirUser: 'Patient/1',
      } as const
      const { id } = succeed(await addUser(admin, { ...account, relatedPersons: ['r-1'] }))
      assert.equal(fail(await changeUser(admin, { id }, { admin: true })), 'invalid')
      assert.equal(fail(await changeUser(admin, { id, kind: 'clinician' }, { disabled: true })), 'not_found')
      assert.deepEqual(
        (await listUsers(admin, { kind: 'account', limit: 5 })).items.map(user => user.relatedPersons),
        [['r-1']],
      )
      assert.equal(
        fail(await addUser(admin, { ...account, username: 'x', fhirUser: 'Practitioner/1' })),
        'invalid',
      )
      assert.equal(fail(await addUser(admin, account)), 'conflict')
    })

    it('lists the keys without their private parts', async () => {
      const [key] = (await listKeys(admin)).map(one => toJson(KEYS.columns, one))
      assert.deepEqual(Object.keys(key ?? {}), ['kid', 'state', 'created_at', 'signs_from'])
    })
  })
})
