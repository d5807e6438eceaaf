import { sql } from 'kysely'
import { type Static, Type } from 'typebox'
import { countRecords } from '../../../audit/index.ts'
import { DAY_MS } from '../../../core/index.ts'
import { Members } from '../../../endpoint/index.ts'
import { isPresent } from '../../../store/index.ts'
import { FHIR_USER_ATTENTION } from '../accounts/fhir-users.ts'
import { SHARING_ATTENTION } from '../accounts/shared-fhir-users.ts'
import { BURST_ATTENTION } from '../accounts/sign-in-bursts.ts'
import { USER_ATTENTION } from '../accounts/user-list.ts'
import { APP_ATTENTION } from '../apps/client-list.ts'
import type { Admin } from '../base/action.ts'
import { KEY_ATTENTION } from '../server/keys.ts'
import { PROVIDER_ATTENTION } from '../server/providers.ts'
import { SERVER_ATTENTION, SETTINGS_ATTENTION } from '../server/system.ts'
import type { Attention } from '../subject/attention.ts'
import { type AdminCall, defineEndpoint } from '../subject/endpoint.ts'
import { VERIFICATION_ATTENTION } from '../trail/verification.ts'

const Counts = Members({
  apps: Type.Integer(),
  clinicians: Type.Integer(),
  accounts: Type.Integer({ description: 'Of patients and related persons.' }),
  sign_ins: Type.Integer({ description: 'Browsers with a signed-in user.' }),
  refused_sign_ins: Type.Optional(
    Type.Integer({ description: 'In the last 24 hours. Absent if there are too many to count.' }),
  ),
})

const Matter = Members({
  code: Type.String({ description: 'For example `apps-unverified`. The same for the same matter.' }),
  text: Type.String(),
  path: Type.String({ description: 'The page below `/admin` where something can be done about it.' }),
})

/** Refused sign-ins of a day that are more than people forget their passwords. */
const MANY_REFUSED = 20

const SIGN_IN_ATTENTION: Attention = {
  code: 'sign-ins-refused',
  path: '/audit?kind=login&result=refused',
  action: 'See records',
  async find({ admin }) {
    const refused = await countRefused(admin)
    if (refused !== undefined && refused < MANY_REFUSED) return undefined
    return `${refused?.toLocaleString('en') ?? 'Very many'} sign-ins were refused in the last 24 hours.`
  },
}

/** What may need attention, in the order of the page. */
const ATTENTION: readonly Attention[] = [
  SERVER_ATTENTION,
  PROVIDER_ATTENTION,
  ...APP_ATTENTION,
  KEY_ATTENTION,
  SIGN_IN_ATTENTION,
  BURST_ATTENTION,
  ...VERIFICATION_ATTENTION,
  FHIR_USER_ATTENTION,
  SHARING_ATTENTION,
  ...USER_ATTENTION,
  SETTINGS_ATTENTION,
]

/** Something to look at, and the link to the page where something can be done about it. */
export interface FoundMatter extends Static<typeof Matter> {
  readonly action: string
}

/** The state of the deployment at a glance: counts, and what needs attention. */
export async function findOverview(
  call: Pick<AdminCall, 'admin' | 'context' | 'app'>,
): Promise<{ readonly counts: Static<typeof Counts>; readonly attention: readonly FoundMatter[] }> {
  const counts = await findCounts(call.admin)
  const found = ATTENTION.map(async ({ find, ...matter }) =>
    [(await find(call)) ?? []].flat().map(note => {
      const { name, ...more } = typeof note === 'string' ? { text: note } : note
      return { ...matter, ...more, code: name === undefined ? matter.code : `${matter.code}-${name}` }
    }),
  )
  return { counts, attention: (await Promise.all(found)).flat() }
}

async function findCounts({ store, clock }: Admin): Promise<Static<typeof Counts>> {
  const { db } = store
  const count = sql<number>`count(*)`.as('count')
  const isAccount = sql<boolean>`(fhir_user_id like 'Patient/%' or fhir_user_id like 'RelatedPerson/%')`
  const [apps, users, accounts, signIns, refused] = await Promise.all([
    db.selectFrom('client').select(count).where(isPresent).executeTakeFirstOrThrow(),
    db.selectFrom('clinician').select(count).executeTakeFirstOrThrow(),
    db.selectFrom('clinician').select(count).where(isAccount).executeTakeFirstOrThrow(),
    db.selectFrom('login').select(count).where('expires_at', '>', clock()).executeTakeFirstOrThrow(),
    countRefused({ store, clock }),
  ])
  return {
    apps: Number(apps.count),
    clinicians: Number(users.count) - Number(accounts.count),
    accounts: Number(accounts.count),
    sign_ins: Number(signIns.count),
    ...(refused !== undefined && { refused_sign_ins: refused }),
  }
}

/** The refused sign-ins of a day. Undefined if there are too many to count. */
async function countRefused({ store, clock }: Pick<Admin, 'store' | 'clock'>): Promise<number | undefined> {
  const filter = { events: [{ kind: 'login' }], allowed: false, since: clock() - DAY_MS } as const
  return (await countRecords(store, filter))?.refused
}

export const overviewEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/overview',
    title: 'Counts, and what needs attention',
    result: Members({ counts: Counts, attention: Type.Array(Matter) }),
    async handle(call) {
      const { counts, attention } = await findOverview(call)
      return { counts, attention: attention.map(({ code, text, path }) => ({ code, text, path })) }
    },
  }),
]
