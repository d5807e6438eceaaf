import { Type } from 'typebox'
import { DAY_MS, isFailure } from '../../../core/index.ts'
import { formatTime, Members, Time } from '../../../endpoint/index.ts'
import type { Sealer } from '../../../store/index.ts'
import { html, renderBadge, renderDateTime } from '../../../web/ui/index.ts'
import { KEY_LEAD_MS } from '../../oauth/keys/key-ring.ts'
import {
  canOpenSigningKeys,
  makeNextSigningKey,
  withdrawEveryKey,
  withdrawSigningKey,
} from '../../oauth/keys/signing-key.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  failAdmin,
  recordAction,
} from '../base/action.ts'
import { defineArea } from '../subject/area.ts'
import type { Attention } from '../subject/attention.ts'
import type { Filters } from '../subject/filters.ts'
import { defineList } from '../subject/list.ts'
import { renderDangerLink, renderLink } from '../subject/page/shell.ts'
import type { Subject } from '../subject/subject.ts'

const ROTATE_KEYS: AdminOperation = { name: 'keys rotate', signIn: 'asks' }
const WITHDRAW_KEY: AdminOperation = { name: 'keys withdraw', signIn: 'asks' }

/** The signing keys. */
export interface KeyDescription {
  readonly kid: string
  readonly state: 'signs' | 'next' | 'retired'
  readonly createdAt: number
  readonly signsFrom: number
  readonly retiredAt: number | undefined
}

/** The signing keys, newest first. */
export async function listKeys({
  store,
  clock,
}: Pick<Admin, 'store' | 'clock'>): Promise<readonly KeyDescription[]> {
  const rows = await store.db.selectFrom('signing_key').selectAll().orderBy('generation', 'desc').execute()
  const now = clock()
  const signing = rows.find(row => row.signs_from <= now)
  return rows.map(row => ({
    kid: row.kid,
    state: row === signing ? 'signs' : row.signs_from > now ? 'next' : 'retired',
    createdAt: row.created_at,
    signsFrom: row.signs_from,
    retiredAt: row.retired_at ?? undefined,
  }))
}

const STATES = {
  signs: renderBadge('Signs', 'ok'),
  next: renderBadge('Next', 'accent'),
  retired: renderBadge('Retired'),
} as const

export const KEYS = defineList<KeyDescription, Filters>({
  columns: {
    kid: {
      schema: Type.String(),
      of: 'kid',
      page: ['Key', key => html`<code class="url">${key.kid}</code>`],
      table: 'KID',
    },
    state: {
      schema: Type.Union([Type.Literal('signs'), Type.Literal('next'), Type.Literal('retired')]),
      of: 'state',
      page: ['State', key => STATES[key.state]],
      table: 'STATE',
    },
    created_at: { schema: Time, of: 'createdAt', page: 'Created', table: 'MADE' },
    signs_from: { schema: Time, of: 'signsFrom', page: 'Signs from', table: 'SIGNS FROM' },
    retired_at: {
      schema: Type.Optional(Time),
      of: 'retiredAt',
      page: ['Retired', ({ retiredAt }) => (retiredAt === undefined ? 'No' : renderDateTime(retiredAt))],
      table: 'RETIRED',
    },
  },
  filters: {},
  read: async admin => ({ items: await listKeys(admin), next: undefined }),
  api: { path: '/keys', title: 'Signing keys, newest first', isWhole: true },
  page: {
    section: 'keys',
    title: 'Signing keys',
    lead: 'They sign access tokens and ID tokens. A key is published before it signs, and stays published until its last token has expired.',
    caption: 'Signing keys, newest first',
    notFound: { title: 'No keys', text: 'A server creates the first key when it starts.' },
    actions: ({ mayChange }) => (mayChange ? renderLink('/keys/rotate', 'Rotate keys', 'btn') : undefined),
    renderAction: ({ kid }) =>
      renderDangerLink(
        `/keys/${encodeURIComponent(kid)}/withdraw`,
        html`Withdraw<span class="sr"> ${kid}</span>`,
      ),
    done: {
      rotated: 'A new key is published. In a few seconds, new tokens are signed with it.',
      withdrawn: 'The key is withdrawn.',
    },
  },
  command: { name: 'keys list', nouns: 'keys' },
})

/** Publishes a new key, and returns the time from which it signs, when every server has fetched it (KEY-3). */
export async function rotateKeys(
  admin: Admin,
  sealer: Sealer,
): Promise<{ readonly signs_from: string } | AdminFailure> {
  const fault = await requireSameSecret(admin, sealer)
  if (fault) return fault
  const now = admin.clock()
  const signsFrom = now + KEY_LEAD_MS.byCommand
  const after = { signs_from: formatTime(signsFrom) }
  const made = await makeNextSigningKey(admin.store, sealer, {
    now,
    signsFrom,
    record: trx => recordAction(admin, { operation: ROTATE_KEYS, after }, trx),
  })
  if (isFailure(made)) return made
  return made ? after : failAdmin('keys-rotated-meanwhile')
}

/** Removes a leaked key at once. A new key signs from now on (KEY-4). */
export async function withdrawKey(
  admin: Admin,
  sealer: Sealer,
  kid: string,
): Promise<{ readonly kid: string } | AdminFailure> {
  const fault = await requireSameSecret(admin, sealer)
  if (fault) return fault
  const withdrawn = await withdrawSigningKey(admin.store, sealer, {
    kid,
    now: admin.clock(),
    record: trx => recordAction(admin, { operation: WITHDRAW_KEY, target: kid, before: { kid } }, trx),
  })
  if (isFailure(withdrawn)) return withdrawn
  return withdrawn ? { kid } : failAdmin('key-unknown', { kid })
}

/** Removes all keys, including the app server's, whatever secret encrypted them. */
export function withdrawKeys(admin: Admin, sealer: Sealer): Promise<AdminFailure | undefined> {
  return withdrawEveryKey(admin.store, sealer, admin.clock(), trx =>
    recordAction(admin, { operation: WITHDRAW_KEY, target: '--all' }, trx),
  )
}

/** Running servers could not decrypt a key that another secret encrypts. */
async function requireSameSecret({ store }: Admin, sealer: Sealer): Promise<AdminFailure | undefined> {
  return (await canOpenSigningKeys(store, sealer)) ? undefined : failAdmin('keys-of-another-secret')
}

const KEY: Subject<KeyDescription, string, { readonly signs_from?: string; readonly kid?: string }> = {
  name: 'keys',
  lists: [KEYS],
  operations: {
    rotate: {
      signIn: ROTATE_KEYS.signIn,
      isOnAll: true,
      api: {
        path: '',
        title: 'Publish a new key, and sign tokens with it a few seconds later',
        result: Members({ signs_from: Time }),
      },
      page: {
        title: () => 'Rotate the signing keys?',
        text: 'A new key is published. New tokens are signed with it as soon as all servers have it. Tokens signed with the current key stay valid.',
        button: 'Rotate keys',
        isDangerous: false,
      },
      command: {
        done: ({ signs_from }) => `New tokens are signed with a new key from ${signs_from}`,
        help: `
Publishes a new key at once. The key signs tokens a few seconds later, when every server has fetched it. The old key stays
published until the last token that it signed has expired. The auth server also rotates keys by age
(smart.server.key-max-age-days).`,
      },
      perform: (admin, _target, _input, { openSealer }) => rotateKeys(admin, openSealer()),
    },
    withdraw: {
      signIn: WITHDRAW_KEY.signIn,
      api: {
        method: 'DELETE',
        path: '',
        title: 'Withdraw a leaked key at once',
        description:
          'Every server refuses tokens signed with it within 5 seconds. New tokens are signed with a new key.',
      },
      page: {
        title: () => 'Withdraw this key?',
        text: ({ kid }) =>
          html`The key <code>${kid}</code> is removed at once, and all tokens that it signed become invalid: users have to launch their apps again. Do this if the key has leaked.`,
        button: 'Withdraw key',
      },
      perform: (admin, kid, _input, { openSealer }) => withdrawKey(admin, openSealer(), kid),
    },
  },
  toTarget: kid => kid,
  async find({ admin }, kid) {
    return (await listKeys(admin)).find(key => key.kid === kid) ?? failAdmin('key-not-shown')
  },
  api: {
    path: '/keys/:kid',
    result: Members({ kid: Type.String() }),
  },
  pages: {
    section: 'keys',
    path: '/keys/:kid',
    show: (_request, _changed, { verb }) => `/keys?done=${verb === 'rotate' ? 'rotated' : 'withdrawn'}`,
  },
  command: { noun: 'keys' },
}

export const KEY_AREA = defineArea(KEY)

/** The age of a key without a rotation by age, at which somebody should rotate it. */
const OLD_KEY_DAYS = 365

export const KEY_ATTENTION: Attention = {
  code: 'keys-old',
  path: '/keys',
  action: 'Rotate keys',
  async find({ admin, context: { settings } }) {
    const { createdAt = admin.clock() } = (await listKeys(admin)).find(({ state }) => state === 'signs') ?? {}
    const days = Math.floor((admin.clock() - createdAt) / DAY_MS)
    // A day later, because servers rotate keys only while they sign.
    const limit = settings.keyMaxAgeDays > 0 ? settings.keyMaxAgeDays + 1 : OLD_KEY_DAYS
    return days < limit ? undefined : `The signing key is ${days} days old: rotate it.`
  },
}
