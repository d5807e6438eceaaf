import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { formatTime, Members } from '../../../endpoint/index.ts'
import { findSignIns } from '../../users/sign-ins.ts'
import { type Area, defineArea } from '../subject/area.ts'
import { describeColumns, toJson } from '../subject/columns.ts'
import { defineEndpoint } from '../subject/endpoint.ts'
import type { AdminCaller, Subject } from '../subject/subject.ts'
import { NewLink, Password, WithLink } from './change-sign-in.ts'
import { addUser, changeUser } from './change-user.ts'
import { findUnknown, listFhirUsers } from './fhir-users.ts'
import { type ChangedUser, findShown, type ShownUser } from './perform-on-user.ts'
import { describeSharing } from './shared-fhir-users.ts'
import { SIGN_IN_COLUMNS } from './sign-ins.ts'
import { describeMembers, readMembers, type UserKind } from './user-fields.ts'
import { listColumns, USER_LISTS } from './user-list.ts'
import { USER_OPERATIONS } from './user-operations.ts'
import type { UserDescription, UserTarget } from './users.ts'

/** Only in responses about one user. */
const ABOUT_ONE = {
  unknown_fhir_users: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Resources of this user that the FHIR server does not have. Absent if the FHIR server does not respond.',
    }),
  ),
  warnings: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Other accounts with the same FHIR user. Absent if there are none.',
    }),
  ),
}

const KINDS = {
  clinician: { path: '/clinicians', name: 'clinician' },
  account: { path: '/accounts', name: 'account of a patient or of related persons' },
} as const

/** A user for programs, with a question to the FHIR server. */
async function describeOne(kind: UserKind, { context, admin }: AdminCaller, user: UserDescription) {
  const unknown = await findUnknown(context, admin, listFhirUsers(user))
  const warnings = await describeSharing(context, user)
  return {
    ...toJson(listColumns(kind), user),
    ...(unknown && { unknown_fhir_users: unknown }),
    ...(warnings.length > 0 && { warnings }),
  }
}

function describeLink({ activationLink }: ChangedUser) {
  if (!activationLink) return {}
  const { url, expiresAt } = activationLink
  return { activation_link: { url, expires_at: formatTime(expiresAt) } }
}

function defineUsers(kind: UserKind): Subject<ShownUser, UserTarget, ChangedUser, UserDescription> {
  const { path, name } = KINDS[kind]
  const article = kind === 'account' ? 'an' : 'a'
  const User = Members({ ...describeColumns(listColumns(kind)).properties, ...ABOUT_ONE })
  return {
    name: kind,
    lists: [USER_LISTS[kind]],
    operations: {
      ...USER_OPERATIONS,
      add: {
        ...USER_OPERATIONS.add,
        isOnAll: true,
        api: {
          title: `Add ${article} ${name}`,
          description:
            'If the body has neither a password nor a link, the user signs in with an identity provider.',
          path: '',
          input: Members({ ...describeMembers(kind, 'add'), password: Password, activation_link: WithLink }),
          status: 201,
          result: Members({ ...User.properties, activation_link: Type.Optional(NewLink) }),
        },
        perform(admin, _, { password, activation_link: withLink, ...members }: SecretMembers) {
          const { username = '', displayName = '', fhirUser = '', ...others } = readMembers(members)
          return addUser(admin, { ...others, kind, username, displayName, fhirUser, password, withLink })
        },
      },
      set: {
        ...USER_OPERATIONS.set,
        api: {
          title: `Change ${article} ${name}`,
          description:
            'Absent members keep their values. Disabling a user ends all sign-ins and the access of apps.',
          method: 'PATCH',
          path: '',
          input: Members(describeMembers(kind, 'set')),
        },
        perform: (admin, target, members) => changeUser(admin, target, readMembers({ ...members })),
      },
    },
    toTarget: id => ({ id, kind }),
    find: ({ admin }, id) => findShown(admin, { id, kind }),
    api: {
      path: `${path}/:id`,
      one: {
        title: `One ${name}`,
        result: User,
        describe: (user, caller) => describeOne(kind, caller, user),
      },
      result: User,
      async describe(changed, caller, verb) {
        if (verb === 'add') return { ...(await describeOne(kind, caller, changed)), ...describeLink(changed) }
        if (verb === 'set') return describeOne(kind, caller, changed)
        const { password, activationLink } = changed
        if (activationLink) return describeLink(changed)
        return password === undefined ? toJson(listColumns(kind), changed) : { password }
      },
    },
    command: {
      noun: kind,
      option: 'username',
      // `clinician …` also finds the accounts of patients, as in the first release.
      toTarget: username => (kind === 'account' ? { username, kind } : { username }),
    },
  }
}

interface SecretMembers {
  readonly password?: string
  readonly activation_link?: boolean
}

/** The users of one kind, for programs and commands. */
function defineUserArea(kind: UserKind): Area {
  const subject = defineUsers(kind)
  const signIns = defineEndpoint({
    method: 'GET',
    path: `${KINDS[kind].path}/:id/sign-ins`,
    title: 'Browsers in which the user is signed in, most recently used first',
    result: Members({ items: Type.Array(describeColumns(SIGN_IN_COLUMNS)) }),
    async handle({ admin, params: { id = '' } }) {
      const user = await findShown(admin, { id, kind })
      if (isFailure(user)) return user
      return { items: (await findSignIns(admin, user.id)).map(signIn => toJson(SIGN_IN_COLUMNS, signIn)) }
    },
  })
  return defineArea(subject, { endpoints: [signIns] })
}

export const CLINICIAN_AREA = defineUserArea('clinician')
export const ACCOUNT_AREA = defineUserArea('account')
