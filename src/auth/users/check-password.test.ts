import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { hash } from 'bcrypt'
import { isFailure } from '../../core/index.ts'
import { LIMITS } from '../base/limits.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import { openTestStore } from '../testing/test-store.ts'
import { addWrongPasswords } from '../testing/wrong-passwords.ts'
import { type AttemptResult, tryLogin } from './attempt.ts'
import { createPasswordCheck, type PasswordCheck, PasswordQueue } from './check-password.ts'
import { isPasswordOf } from './passwords.ts'

/** Until what has started waits for something else: statements of SQLite take a few turns of the event loop. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 2_000; turn++) await yieldTurn()
}

function nameResult(result: AttemptResult): string {
  return isFailure(result) ? result.reason : 'right'
}

describe('the password check', () => {
  const open = openTestStore()

  it('completes a login at once while 64 others with unknown usernames wait (LOGIN-7)', async () => {
    const flooded = await TestAuthServer.open(await open())
    await flooded.addUser('punctual')
    const password_hash = await hash('sallyport', 8)
    await flooded.store.db.updateTable('clinician').set({ password_hash }).execute()
    const order: string[] = []
    const began = performance.now()
    const flood = Array.from({ length: 64 }, (_, at) =>
      flooded
        .openBrowser()
        .login(`made-up-${at}`, 'wrong')
        .then(({ statusCode }) => order.push(String(statusCode))),
    )
    const mistyped = flooded.openBrowser().login('punctual', 'wrong')
    const right = await flooded.openBrowser().login('punctual')
    const waited = performance.now() - began
    assert.equal(right.statusCode, 302)
    assert.ok(order.length < 12, `${order.length} of the flood were answered first`)
    // A wrong password of an existing username waits as long as the others, so that the time reveals nothing.
    const answered = await mistyped.then(() => order.length)
    assert.ok(answered > 50, `it was answered after ${answered}`)
    await Promise.all(flood)
    assert.deepEqual(new Set(order), new Set(['401']))
    const share = waited / (performance.now() - began)
    assert.ok(share < 0.5, `it took ${share.toFixed(2)} of the time that all of them took`)
  })

  it('refuses further logins with a username that has 100 waiting, and serves other usernames', async () => {
    const auth = await TestAuthServer.open(await open(), { settings: { loginFailureLimit: 1_000 } })
    await auth.addUser('guessed')
    const flood = Array.from({ length: LIMITS.loginsWaitingPerUsername + 20 }, () =>
      auth.openBrowser().login('guessed', 'wrong'),
    )
    assert.equal((await auth.openBrowser().login('clinician')).statusCode, 302)
    const answers = await Promise.all(flood)
    const refused = answers.filter(({ statusCode }) => statusCode === 429)
    assert.ok(refused.length > 0 && refused.length <= 20, `${refused.length} were refused`)
    for (const { headers, body } of refused) {
      assert.ok(Number(headers['retry-after']) > 0)
      assert.match(body, /Too many attempts/)
    }
    assert.deepEqual(new Set(answers.map(({ statusCode }) => statusCode)), new Set([401, 429]))
  })

  describe('of a username', () => {
    /** Accounts that differ only in what a refusal must not reveal. */
    const KINDS = ['unknown', 'known', 'locked', 'disabled'] as const

    /** A server whose accounts have these names, attempts at them, and the steps that they take. */
    async function openSteps() {
      const auth = await TestAuthServer.open(await open())
      for (const kind of ['known', 'locked', 'disabled'])
        await auth.addUser(kind, { disabled: kind === 'disabled' })
      await addWrongPasswords(auth.store.db, (await auth.findUser('locked')).id)
      const steps: string[] = []
      const db = auth.store.db.withPlugin({
        transformQuery: ({ node }) => {
          steps.push(
            `${node.kind} ${JSON.stringify(node).match(/"SchemableIdentifierNode".*?"name":"(\w+)"/)?.[1]}`,
          )
          return node
        },
        transformResult: async ({ result }) => result,
      })
      const store = { ...auth.store, db }
      const clock = () => auth.time.now
      const busy = Promise.withResolvers<void>()
      const pauses: number[] = []
      const pause = (ms: number) => {
        pauses.push(ms)
        return busy.promise
      }
      const inner = createPasswordCheck({ store: auth.store, clock, cost: 4, pause })
      const passwordCheck: PasswordCheck = {
        compare: (...compared) => {
          steps.push('compare')
          return inner.compare(...compared)
        },
        takeTurn: turn => inner.takeTurn(turn),
      }
      const context = { store, settings: auth.settings, clock, passwordCheck, rules: auth.rules }
      const attempt = (username: string, address: string, password = 'wrong') =>
        tryLogin(context, { username, password, address }, async ({ keep }) => {
          steps.push('record')
          await db.transaction().execute(keep)
        })
      /** Occupies one comparison until `release`, and the others until `end`: then attempts are examined one by one. */
      const occupy = () => {
        const held = Array.from({ length: LIMITS.passwordsAtOnce }, () => Promise.withResolvers<undefined>())
        const turns = held.map(({ promise }) =>
          inner.takeTurn({
            username: 'running',
            network: 'running',
            canSucceed: false,
            examine: () => promise,
            refuse: async () => undefined,
          }),
        )
        const release = () => held[0]?.resolve(undefined)
        const end = () => {
          for (const { resolve } of held) resolve(undefined)
          return Promise.all(turns)
        }
        return { release, end }
      }
      return { auth, steps, attempt, occupy, inner, pauses, endPauses: busy.resolve }
    }

    it('takes the same steps up to a refusal, whether it is unknown, known, locked or disabled (LOGIN-5)', async () => {
      const { steps, attempt } = await openSteps()
      const taken: (readonly string[])[] = []
      for (const [at, kind] of KINDS.entries()) {
        steps.length = 0
        assert.equal(nameResult(await attempt(kind, `10.0.0.${at}`)), 'password-wrong')
        taken.push([...steps])
      }
      assert.ok(taken[0]?.includes('compare') && taken[0].includes('InsertQueryNode wrong_password'))
      for (const other of taken) assert.deepEqual(other, taken[0])
      const limited: (readonly string[])[] = []
      for (const [at, kind] of KINDS.entries()) {
        while (nameResult(await attempt(kind, `10.0.0.${at}`)) === 'password-wrong') steps.length = 0
        steps.length = 0
        assert.equal(nameResult(await attempt(kind, `10.0.0.${at}`)), 'password-too-many')
        limited.push([...steps])
      }
      assert.ok(limited[0]?.includes('UpdateQueryNode login_failure'), 'a commit for each refusal')
      for (const other of limited) assert.deepEqual(other, limited[0])
    })

    it('is refused in its turn, whether it is unknown, known, locked or disabled (LOGIN-5)', async () => {
      const { attempt, occupy } = await openSteps()
      const { release, end } = occupy()
      const order: number[] = []
      const names = Array.from({ length: 4 }, () => [...KINDS, ...KINDS.toReversed()]).flat()
      const attempts = names.map(async (username, at) => {
        assert.equal(nameResult(await attempt(username, `10.0.${at}.1`)), 'password-wrong')
        order.push(at)
      })
      // All are in the line before one is examined.
      await settle()
      release()
      await Promise.all(attempts)
      assert.deepEqual(order, [...names.keys()])
      await end()
    })

    it('is refused after the same time while the queue is full, and a right password is accepted (LOGIN-5, LOGIN-7)', async () => {
      const { attempt, occupy, inner, pauses, endPauses } = await openSteps()
      const { release, end } = occupy()
      const flood = Array.from({ length: LIMITS.loginsWaiting }, (_, at) =>
        inner.takeTurn({
          username: `made-up-${at}`,
          network: `flood-${at}`,
          canSucceed: false,
          examine: async () => undefined,
          refuse: async () => undefined,
        }),
      )
      const answered: string[] = []
      const refused = KINDS.map((username, at) =>
        attempt(username, `10.0.0.${at}`).then(result => answered.push(`${username} ${nameResult(result)}`)),
      )
      const right = attempt('known', '10.0.1.1', 'sallyport')
      await settle()
      release()
      assert.equal(nameResult(await right), 'right')
      await Promise.all(flood)
      await end()
      assert.deepEqual(answered, [], 'nobody is refused before the time')
      assert.deepEqual(pauses, Array(KINDS.length + 1).fill(LIMITS.loginBusyMs))
      endPauses()
      await Promise.all(refused)
      assert.deepEqual(answered.toSorted(), KINDS.map(kind => `${kind} password-too-many`).toSorted())
    })

    it('is counted even if the queue is full, and so are guesses that are compared early', async () => {
      const { auth, attempt, occupy, inner } = await openSteps()
      const { release, end } = occupy()
      const line = Array.from({ length: 50 }, (_, at) =>
        inner.takeTurn({
          username: `made-up-${at}`,
          network: `flood-${at}`,
          canSucceed: false,
          examine: async () => undefined,
          refuse: async () => undefined,
        }),
      )
      const guesses = Array.from({ length: 30 }, () => attempt('known', '10.0.0.1'))
      const right = attempt('known', '10.0.0.1', 'sallyport')
      await settle()
      release()
      assert.notEqual(nameResult(await right), 'right')
      await Promise.all([...line, ...guesses])
      await end()
      const rows = await auth.store.db
        .selectFrom('wrong_password')
        .select('id')
        .where('clinician_id', '=', (await auth.findUser('known')).id)
        .execute()
      const limit = auth.settings.loginFailureLimit
      assert.ok(
        rows.length >= limit && rows.length < limit + LIMITS.passwordsAtOnce,
        `${rows.length} guesses`,
      )
    })
  })

  it('serves every username once before any twice, from however many networks it is guessed', async () => {
    const queue = new PasswordQueue({ atOnce: 1, longest: 400 })
    const order: string[] = []
    const attempt = (username: string, network: string) =>
      queue.run({ sender: [username, network], first: true }, async () =>
        order.push(`${username} ${network}`),
      )
    await Promise.all([
      ...Array.from({ length: 100 }, (_, at) => attempt('known', `attacker-${at}`)),
      attempt('known', 'attacker-1'),
      attempt('known', 'own'),
      attempt('other', 'own'),
    ])
    assert.equal(order.indexOf('other own'), 2)
    assert.equal(order.indexOf('known own'), 101)
    assert.equal(order.at(-1), 'known attacker-1')
    assert.equal(order.length, 103)
  })

  it('compares the password of the test login once for all first requests of the login page (HTTP-13)', async () => {
    const auth = await TestAuthServer.open(await open())
    const password_hash = await hash('sallyport', 12)
    await auth.store.db.updateTable('clinician').set({ password_hash }).execute()
    const time = async (work: () => Promise<unknown>) => {
      const start = performance.now()
      await work()
      return performance.now() - start
    }
    const one = await time(() => isPasswordOf(password_hash, 'sallyport'))
    const pages = await time(() =>
      Promise.all(
        Array.from({ length: 40 }, async () =>
          assert.match((await auth.openBrowser().get('/login')).body, /sallyport<\/code>/),
        ),
      ),
    )
    // A comparison for each request takes 20 times as long on two processors.
    assert.ok(pages < 8 * one, `40 pages take ${(pages / one).toFixed(1)} times as long as a comparison`)
  })

  it('takes the same time for any username, whatever the cost of its hash (LOGIN-5)', async () => {
    const auth = await TestAuthServer.open(await open())
    await auth.addUser('costly')
    const store = async (username: string, cost: number) =>
      auth.store.db
        .updateTable('clinician')
        .set({ password_hash: await hash('sallyport', cost) })
        .where('username', '=', username)
        .execute()
    await store('costly', 10)
    await store('clinician', 5)
    const best = new Map<string, number>()
    // Without the padding it is 32 times, however often it is measured.
    const compare = () => Math.max(...best.values()) / Math.min(...best.values())
    for (let round = 0; round < 4 || (round < 40 && compare() >= 4); round++)
      for (const username of ['costly', 'clinician', 'nobody']) {
        const start = performance.now()
        await auth.openBrowser().login(username, 'wrong')
        const took = performance.now() - start
        best.set(username, Math.min(took, best.get(username) ?? took))
      }
    assert.ok(compare() < 4, JSON.stringify([...best]))
  })

  it('takes about the same time for an unknown username as for a wrong password (LOGIN-5)', async () => {
    const auth = await TestAuthServer.open(await open())
    await auth.store.db
      .updateTable('clinician')
      .set({ password_hash: await hash('sallyport', 10) })
      .execute()
    const time = async (username: string) => {
      const start = performance.now()
      await auth.openBrowser().login(username, 'wrong')
      return performance.now() - start
    }
    await time('clinician')
    let known = Number.POSITIVE_INFINITY
    let unknown = Number.POSITIVE_INFINITY
    // Other load on the machine only adds. Without a comparison it is ten times less, however often it is measured.
    for (let round = 0; round < 2 || (round < 20 && unknown <= known / 3); round++) {
      known = Math.min(known, await time('clinician'))
      unknown = Math.min(unknown, await time('nobody'))
    }
    assert.ok(unknown > known / 3, `known ${known} ms, unknown ${unknown} ms`)
  })
})
