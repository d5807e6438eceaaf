import { randomUUID } from 'node:crypto'
import type { Sealer, Store } from '../../store/index.ts'
import type { ExportJobs, ExportPlan } from '../exports.ts'

const NO_FILES: ExportPlan = { files: [], next: { part: 0, after: 0 } }

/** Exports in the database of the server. */
export function createExportJobs({ db }: Store, sealer: Sealer): ExportJobs {
  const describeCell = (id: string, column: 'order_sealed' | 'plan_sealed') =>
    ({ table: 'export_job', column, row: id }) as const
  return {
    async add(order, { issuer, client }, expiresAt) {
      const id = randomUUID()
      const { level, types, moment } = order
      await db
        .insertInto('export_job')
        .values({
          id,
          issuer,
          client_id: client,
          level,
          types: types.join(' '),
          started_at: moment.time,
          expires_at: expiresAt,
          next_poll_at: 0,
          revision: 0,
          files: null,
          order_sealed: sealer.seal(JSON.stringify(order), describeCell(id, 'order_sealed')),
          plan_sealed: null,
        })
        .execute()
      return id
    },
    async find(id, { issuer, client }, now) {
      const row = await db
        .selectFrom('export_job')
        .selectAll()
        .where('id', '=', id)
        .where('issuer', '=', issuer)
        .where('client_id', '=', client)
        .where('expires_at', '>', now)
        .executeTakeFirst()
      if (!row) return undefined
      const plan = row.plan_sealed
      return {
        id,
        owner: { issuer, client },
        order: JSON.parse(sealer.open(row.order_sealed, describeCell(id, 'order_sealed'))),
        plan: plan === null ? NO_FILES : JSON.parse(sealer.open(plan, describeCell(id, 'plan_sealed'))),
        revision: row.revision,
        nextPollAt: row.next_poll_at,
        expiresAt: row.expires_at,
      }
    },
    async isOpen(id, now) {
      const row = await db
        .selectFrom('export_job')
        .select('id')
        .where('id', '=', id)
        .where('expires_at', '>', now)
        .executeTakeFirst()
      return row !== undefined
    },
    async count({ issuer, client }, now) {
      const row = await db
        .selectFrom('export_job')
        .select(({ fn }) => fn.countAll<number | string>().as('jobs'))
        .where('issuer', '=', issuer)
        .where('client_id', '=', client)
        .where('expires_at', '>', now)
        .executeTakeFirst()
      return Number(row?.jobs ?? 0)
    },
    async update({ id, revision }, plan, nextPollAt) {
      const { numUpdatedRows } = await db
        .updateTable('export_job')
        .set({
          plan_sealed: sealer.seal(JSON.stringify(plan), describeCell(id, 'plan_sealed')),
          files: plan.next ? null : (plan.relayed ?? plan.files.length),
          next_poll_at: nextPollAt,
          revision: revision + 1,
        })
        .where('id', '=', id)
        .where('revision', '=', revision)
        .executeTakeFirst()
      return numUpdatedRows === 1n
    },
    async end(id) {
      await db.deleteFrom('export_job').where('id', '=', id).execute()
    },
  }
}
