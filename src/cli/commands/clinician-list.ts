import { formatColumns } from '../columns.ts'
import type { Command } from '../command.ts'
import { withStore } from '../with-store.ts'

/** `sallyport clinician list`. */
export const clinicianList: Command = {
  name: 'clinician list',
  summary: 'List the clinicians',
  usage: `
Usage: npm run -s sallyport -- clinician list`,
  options: {},
  positionals: { min: 0, max: 0 },
  async run(_args, io) {
    const rows = await withStore(io, ({ db }) =>
      db.selectFrom('clinician').selectAll().orderBy('username').execute(),
    )
    const lines = rows.map(row => [
      row.username,
      row.display_name,
      `Practitioner/${row.fhir_user_id.replace(/^Practitioner\//, '')}`,
      row.disabled ? 'disabled' : 'active',
      row.id,
    ])
    io.stdout.write(
      `${formatColumns([['USERNAME', 'DISPLAY NAME', 'FHIR USER', 'STATE', 'ID'], ...lines])}\n`,
    )
    return 0
  },
}
