import { DatabaseSync } from 'node:sqlite'

type Payload = Readonly<Record<string, unknown>>

/** Durable storage for `oidc-provider`: a commit of each change, as its interface requires. */
export function createSqliteAdapter(file: string) {
  const database = new DatabaseSync(file)
  database.exec('pragma journal_mode = wal; pragma synchronous = full')
  database.exec('create table item (id text primary key, grant_id text, payload text not null)')
  database.exec('create index item_by_grant on item (grant_id)')
  const put = database.prepare('insert or replace into item values (?, ?, ?)')
  const get = database.prepare('select payload from item where id = ?')
  const consume = database.prepare(
    "update item set payload = json_set(payload, '$.consumed', ?) where id = ?",
  )
  const remove = database.prepare('delete from item where id = ?')
  const removeGrant = database.prepare('delete from item where grant_id = ?')

  return class SqliteAdapter {
    readonly #model: string
    constructor(model: string) {
      this.#model = model
    }
    async upsert(id: string, payload: Payload): Promise<void> {
      put.run(this.#makeKey(id), String(payload.grantId ?? ''), JSON.stringify(payload))
    }
    async find(id: string): Promise<Payload | undefined> {
      const row = get.get(this.#makeKey(id))
      return row && JSON.parse(String(row.payload))
    }
    async consume(id: string): Promise<void> {
      consume.run(Math.floor(Date.now() / 1000), this.#makeKey(id))
    }
    async destroy(id: string): Promise<void> {
      remove.run(this.#makeKey(id))
    }
    async revokeByGrantId(id: string): Promise<void> {
      removeGrant.run(id)
    }
    #makeKey(id: string): string {
      return `${this.#model}:${id}`
    }
  }
}
