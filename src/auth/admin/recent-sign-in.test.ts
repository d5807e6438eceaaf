import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { rsaPair } from '../../../test/support/rsa-pair.ts'
import { createAuditor } from '../../audit/index.ts'
import { createSealer } from '../../store/index.ts'
import { type Controls, NO_CONTROLS } from '../base/context.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import { addWrongPasswords } from '../testing/wrong-passwords.ts'
import { ADMIN_SCOPE } from '../words/program-scopes.ts'
import { endExport } from './access/exports.ts'
import { revokeGrantById } from './access/grants.ts'
import { endSessions, setPassword } from './accounts/change-sign-in.ts'
import { addUser, changeUser, removeUser } from './accounts/change-user.ts'
import { linkUser, unlinkUser } from './accounts/link-user.ts'
import type { UserKind } from './accounts/user-fields.ts'
import { ALL_USERS } from './accounts/user-list.ts'
import { USER_OPERATIONS } from './accounts/user-operations.ts'
import { OPERATIONS } from './administration.ts'
import { changeByMetadata, registerByMetadata } from './apps/client-metadata.ts'
import { approveClient, removeClient, rotateClientSecret, setClientDisabled } from './apps/clients.ts'
import { type Admin, AdminFailure, makeCommandLine, recordAction } from './base/action.ts'
import { setAgents } from './server/agents.ts'
import { listKeys, rotateKeys, withdrawKey } from './server/keys.ts'
import { testProvider } from './server/providers.ts'
import { reloadSettings, setLogLevel } from './server/system.ts'
import { exportList } from './subject/export.ts'
import { exportRecords } from './trail/audit.ts'
import { checkFile } from './trail/check-file.ts'
import { startVerification } from './trail/verification.ts'

/** Operations that only read or record a consequence, and whose functions need a whole server. */
const READ_ONLY = [
  'audit list',
  'audit show',
  'bulk-export download',
  'grant export',
  'policy changed',
  'policy explain',
  'policy validate',
  'settings changed',
]

const sealer = createSealer('test secret')
const controls: Controls = {
  ...NO_CONTROLS,
  reload: async () => ({ changed: [], needRestart: [] }),
  setLogLevel: async () => undefined,
}
const REDIRECT = ['https://chart.example/callback']
const SERVICE = {
  token_endpoint_auth_method: 'private_key_jwt' as const,
  scope: 'system/*.cruds',
  jwks: { keys: [{ ...rsaPair().publicKey.export({ format: 'jwk' }), kid: 'own', alg: 'RS384' }] },
}

/** A list without filters. */
const UNFILTERED = { meant: {}, unknown: [] }

/** The action on the client, the user or the grant with this name. */
type Attempt = (admin: Admin, name: string) => Promise<unknown>

function makeUserAttempts<Kind extends UserKind>(kind: Kind) {
  const other = kind === 'clinician' ? 'Practitioner/other' : 'Patient/other'
  const link = { issuer: 'https://idp.example', subject: 'sub' }
  const attempts = {
    add: (admin, name) =>
      addUser(admin, {
        kind,
        username: `new-${name}`,
        displayName: 'New',
        fhirUser: other,
        password: 'a password',
      }),
    set: (admin, username) => changeUser(admin, { username, kind }, { fhirUser: other }),
    enable: (admin, username) => changeUser(admin, { username, kind }, { disabled: false }),
    disable: (admin, username) => changeUser(admin, { username, kind }, { disabled: true }),
    'set-password': (admin, username) => setPassword(admin, { username, kind }, {}),
    'end-sessions': (admin, username) => endSessions(admin, { username, kind }),
    remove: (admin, username) => removeUser(admin, { username, kind }),
    'reset-second-factor': async (admin, username) => {
      const { db } = admin.store
      const row = await db
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', username)
        .executeTakeFirstOrThrow()
      const factor = { id: username, kind: 'totp', name: 'Phone', created_at: 1 } as const
      await db
        .insertInto('factor')
        .values({ ...factor, clinician_id: row.id })
        .onConflict(conflict => conflict.doNothing())
        .execute()
      return USER_OPERATIONS['reset-second-factor'].perform(admin, { username, kind }, {})
    },
    unlock: async (admin, username) => {
      const { db } = admin.store
      const { id } = await db
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', username)
        .executeTakeFirstOrThrow()
      await addWrongPasswords(db, id)
      return USER_OPERATIONS.unlock.perform(admin, { username, kind })
    },
    'end-sign-in': async (admin, username) => {
      const { db } = admin.store
      const row = await db
        .selectFrom('login')
        .innerJoin('clinician', 'clinician.id', 'login.clinician_id')
        .select('id_hash')
        .where('username', '=', username)
        .executeTakeFirst()
      const input = { sign_in: row?.id_hash ?? '' }
      return USER_OPERATIONS['end-sign-in'].perform(admin, { username, kind }, input)
    },
    link: (admin, username) => linkUser(admin, { username, kind }, link),
    unlink: (admin, username) => unlinkUser(admin, { username, kind }, { ...link, subject: username }),
  } satisfies Record<string, Attempt>
  return Object.fromEntries(
    Object.entries(attempts).map(([verb, attempt]) => [`${kind} ${verb}`, attempt]),
  ) as Record<`${Kind} ${keyof typeof attempts}`, Attempt>
}

/** Every other operation. */
async function addExport({ store, clock }: Admin): Promise<string> {
  await store.db
    .insertInto('export_job')
    .values({
      id: 'job',
      issuer: '',
      client_id: 'service',
      level: 'system',
      types: 'Patient',
      started_at: clock(),
      expires_at: clock() + 1,
      next_poll_at: 0,
      revision: 0,
      order_sealed: 'x',
    })
    .execute()
  return 'job'
}

const ATTEMPTS = {
  ...makeUserAttempts('clinician'),
  ...makeUserAttempts('account'),
  'client add': (admin, name) =>
    registerByMetadata(admin, { ...SERVICE, client_id: `new ${name}`.replace(/ /g, '-') }),
  'client set': (admin, name) =>
    changeByMetadata(admin, name, { first_party: true, redirect_uris: ['https://evil.example/'] }),
  'client approve': approveClient,
  'client enable': (admin, name) => setClientDisabled(admin, name, false),
  'client disable': (admin, name) => setClientDisabled(admin, name, true),
  'client rotate-secret': rotateClientSecret,
  'client remove': removeClient,
  'grant revoke': revokeGrantById,
  'bulk-export end': async admin => endExport(admin, await addExport(admin)),
  'agents off': admin => setAgents(admin, 'off'),
  'agents on': admin => setAgents(admin, 'on'),
  'keys rotate': admin => rotateKeys(admin, sealer),
  'keys withdraw': async admin => withdrawKey(admin, sealer, (await listKeys(admin))[0]?.kid ?? ''),
  'settings reload': admin => reloadSettings(admin, controls),
  'log-level set': admin => setLogLevel(admin, controls, 'debug'),
  'provider test': admin => testProvider(admin, 'hospital'),
  'audit verify': admin => startVerification(admin, sealer, {}),
  'audit check-file': admin =>
    checkFile(admin, ['id\r\n1\r\n'], { fhirBaseUrl: 'http://localhost:8080/fhir' }),
  'users export': admin =>
    exportList(ALL_USERS, { operation: { name: 'users export', signIn: 'never asks' } }, admin, UNFILTERED),
  'audit export': admin =>
    exportRecords(admin, 'csv', { ...UNFILTERED, fhirBaseUrl: 'http://localhost:8080/fhir' }),
} satisfies Record<string, Attempt>

/** What may happen after a sign-in of any age. Everything else asks: add a row only for what gives nobody access. */
const WITHOUT_RECENT_SIGN_IN: readonly string[] = [
  'account disable',
  'account end-sessions',
  'account end-sign-in',
  'account remove',
  'agents off',
  'audit check-file',
  'audit export',
  'audit list',
  'audit show',
  'audit verify',
  'bulk-export download',
  'bulk-export end',
  'client disable',
  'client remove',
  'clinician disable',
  'clinician end-sessions',
  'clinician end-sign-in',
  'clinician remove',
  'grant export',
  'grant revoke',
  'log-level set',
  'policy changed',
  'policy explain',
  'policy validate',
  'provider test',
  'settings changed',
  'users export',
]

eachDatabaseIfThorough((_, open) => {
  describe('a sign-in of an administrator half an hour ago', () => {
    let auth: TestAuthServer
    let command: Admin
    let grants = 0
    before(async () => {
      const store = await open()
      const audit = createAuditor({ store })
      auth = await TestAuthServer.open(store, { audit })
      command = {
        store,
        audit,
        clock: () => auth.time.now,
        rules: auth.rules,
        ...makeCommandLine('tester@test'),
      }
    })

    const actAs = (minutes: number): Admin => ({
      ...command,
      actor: { kind: 'clinician', id: 'c', fhirUserId: 'p', authTime: auth.time.now - minutes * 60_000 },
      mayAct: async () => true,
    })
    const attempt = async (act: Attempt, admin: Admin, name: string) => {
      const result = await act(admin, name)
      return result instanceof AdminFailure ? result.code : 'done'
    }
    const readTables = () =>
      Promise.all(
        (['client', 'clinician', 'clinician_link', 'grant', 'signing_key', 'runtime_value'] as const).map(
          table => auth.store.db.selectFrom(table).selectAll().execute(),
        ),
      )
    /** Creates a client, a user or a grant for an operation, and returns its name. */
    async function prepare(operation: string, isAdministrator = false): Promise<string> {
      const [subject = ''] = operation.split(' ')
      const name = `${operation}${isAdministrator ? ' admin' : ''}`.replace(/ /g, '-')
      if (subject === 'client') {
        const app = isAdministrator ? { scope: ADMIN_SCOPE } : { scope: 'openid', redirect_uris: REDIRECT }
        await registerByMetadata(command, { client_id: name, ...app })
      }
      if (subject === 'clinician' || subject === 'account') {
        const fhirUser = subject === 'account' ? 'Patient/1' : 'Practitioner/1'
        const user = {
          kind: subject,
          username: name,
          displayName: name,
          fhirUser,
          admin: isAdministrator,
        } as const
        await addUser(command, user)
        await linkUser(
          command,
          { username: name, kind: subject },
          { issuer: 'https://idp.example', subject: name },
        )
      }
      if (subject !== 'grant') return name
      await auth.exchange(await auth.getCode(await auth.logIn()))
      const rows = await auth.store.db.selectFrom('grant').select('id').orderBy('created_at').execute()
      return rows[grants++]?.id ?? assert.fail()
    }

    for (const [operation, act] of Object.entries<Attempt>(ATTEMPTS)) {
      const isFree = WITHOUT_RECENT_SIGN_IN.includes(operation)
      it(`${isFree ? 'is enough' : 'is not enough'} for ${operation} (ADMIN-4)`, async () => {
        const name = await prepare(operation)
        const content = await readTables()
        const old = await attempt(act, actAs(30), name)
        if (isFree) return assert.notEqual(old, 'reauthenticate')
        assert.equal(old, 'reauthenticate')
        assert.deepEqual(await readTables(), content)
        assert.equal(await attempt(act, actAs(4), name), 'done')
        return undefined
      })
    }

    for (const operation of [
      'client disable',
      'client remove',
      'clinician disable',
      'clinician remove',
    ] as const)
      it(`is not enough for ${operation} if it is about an administrator (ADMIN-4)`, async () => {
        const name = await prepare(operation, true)
        const content = await readTables()
        assert.equal(await attempt(ATTEMPTS[operation], actAs(30), name), 'reauthenticate')
        assert.deepEqual(await readTables(), content)
        assert.equal(await attempt(ATTEMPTS[operation], actAs(4), name), 'done')
      })

    it('is enough for no other operation (ADMIN-4)', async () => {
      const free: string[] = []
      for (const operation of OPERATIONS) {
        const failure = await recordAction(actAs(30), { operation })
        if (failure instanceof AdminFailure) assert.equal(failure.code, 'reauthenticate')
        else free.push(operation.name)
      }
      assert.deepEqual(free.toSorted(), WITHOUT_RECENT_SIGN_IN)
    })

    it('is tested for every operation', () => {
      assert.deepEqual(
        [...Object.keys(ATTEMPTS), ...READ_ONLY].toSorted(),
        OPERATIONS.map(({ name }) => name).toSorted(),
      )
    })

    it('means the same for a clinician and for an account, whose pages are the same (ADMIN-4)', () => {
      const decisions = new Map(OPERATIONS.map(({ name, signIn }) => [name, signIn]))
      for (const [name, decision] of decisions)
        assert.equal(decisions.get(name.replace(/^clinician /, 'account ')), decision)
    })
  })
})
