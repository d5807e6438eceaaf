import type { SqliteConnection } from '../../sqlite/index.ts'

const COLUMNS = `select group_concat(name) as names, group_concat(format('record ->> %Q', name)) as cells
  from pragma_table_info('audit_event') where name <> 'id'`
const FIRST = 'select id from audit_waiting order by id limit ?'

/** Moves waiting records to the trail, and returns how many there were. Call it in a transaction. */
export function moveBatch(connection: SqliteConnection, limit: number): number {
  const [columns] = connection.all(COLUMNS)
  connection.write(
    `insert into audit_event (${columns?.names})
     select ${columns?.cells} from audit_waiting where id in (${FIRST}) order by id`,
    limit,
  )
  return connection.write(`delete from audit_waiting where id in (${FIRST})`, limit)
}
