import type { GrantDescription } from '../../auth/index.ts'
import { HOW } from '../../core/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  formatColumns,
  formatTime,
  getOptional,
  getSubject,
  isSet,
  printJson,
} from '../command.ts'
import { performCommand } from '../with-store.ts'

const grantList: Command = {
  usage: `
Usage: ${HOW} grant list [--user <who>] [--client <app>] [--patient <id>] [--json]

Prints who has access now, as /admin/access does: the grants of apps on behalf of users that can still be used, newest first, and the
apps that need no user (backend services, programs of this server).

Options:
  --user <who>      only grants of this user: a username, a name, the id of an account or a FHIR user (Practitioner/1)
  --client <app>    only access of this app: its id or its name
  --patient <id>    only access to this patient. any: grants with access to every patient that the user can see
  --json            print JSON, as the administration API returns it: items (grants) and services

To end one: grant revoke <id>, or client disable <id>`,
  async run(args, io) {
    const auth = await import('../../auth/index.ts')
    const user = getOptional(args, 'user')
    const app = getOptional(args, 'client')
    const patient = getOptional(args, 'patient')
    const { grants, services } = await performCommand(io, 'Cannot list grants', async admin => {
      const userIds = user === undefined ? undefined : await auth.findAccountIds(admin.store, user)
      if (userIds?.length === 0) throw new CommandFailure(`Cannot list grants: there is no user ${user}`)
      const apps = app === undefined ? undefined : await auth.findApps(admin.store, app)
      if (apps?.isUnknown) throw new CommandFailure(`Cannot list grants: there is no app ${app}`)
      const filter = { userIds, clientIds: apps?.filter, ...auth.readPatientFilter(patient) }
      return {
        grants: await auth.listAll(page => auth.listGrants(admin, { ...filter, ...page })),
        services:
          userIds === undefined
            ? await auth.listServices(admin, { clientIds: apps?.filter, usesFhir: patient !== undefined })
            : [],
      }
    })
    if (isSet(args, 'json')) {
      printJson(io, {
        items: grants.map(auth.describeGrant),
        services: services.map(auth.describeService),
      })
      return 0
    }
    const heads = ['ID', 'APP', 'USER', 'PATIENT', 'GRANTED', 'LAST USED', 'SCOPES']
    const rows = [
      ...grants.map(formatGrant),
      ...services.map(({ clientId, scope, opensEvery }) => [
        '-',
        clientId,
        '(no user)',
        opensEvery ? 'every' : 'none',
        '-',
        '-',
        scope,
      ]),
    ]
    if (rows.length === 0) io.stderr.write('No app has access.\n')
    else io.stdout.write(`${formatColumns([heads, ...rows])}\n`)
    return 0
  },
}

function formatGrant({ id, clientId, username, patientId, opensEvery, ...grant }: GrantDescription) {
  return [
    id,
    clientId,
    username,
    [...(patientId === undefined ? [] : [patientId]), ...(opensEvery ? ['any of the user'] : [])].join(
      ', ',
    ) || '-',
    formatTime(grant.createdAt),
    formatTime(grant.lastUsedAt),
    grant.scope,
  ]
}

const grantRevoke: Command = {
  usage: `
Usage: ${HOW} grant revoke --id <id>

The app loses this access. FHIR servers refuse its tokens within 5 seconds. The user can launch the app again.`,
  positionals: { min: 0, max: 1 },
  async run(args: Arguments, io) {
    const id = getSubject(args, 'id')
    const { revokeGrantById } = await import('../../auth/index.ts')
    await performCommand(io, 'Cannot revoke grant', admin => revokeGrantById(admin, id))
    io.stdout.write(`Revoked grant ${id}\n`)
    return 0
  },
}

export const commands = { 'grant list': grantList, 'grant revoke': grantRevoke }
