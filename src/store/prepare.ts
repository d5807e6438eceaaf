import type { Compilable, CompiledQuery, DialectAdapter, Kysely, QueryResult } from 'kysely'
import type { Schema } from './schema.ts'

/** Stands for a parameter while a query is built. */
class Placeholder {
  readonly name: string | symbol
  constructor(name: string | symbol) {
    this.name = name
  }
}

/**
 * A frequent query that is built and compiled once per database: Kysely takes longer for that than SQLite for the query.
 * `build` is called with placeholders, so it may pass its parameters to the query, but not look at them.
 */
export function prepareQuery<Parameters extends object, Row>(
  build: (db: Kysely<Schema>, parameters: Parameters) => Compilable<Row>,
): (db: Kysely<Schema>, parameters: Parameters) => Promise<QueryResult<Row>> {
  const placeholders = new Proxy<Parameters>(Object.create(null), { get: (_, name) => new Placeholder(name) })
  const compiled = new WeakMap<DialectAdapter, CompiledQuery<Row>>()

  function getCompiled(db: Kysely<Schema>): CompiledQuery<Row> {
    const { adapter } = db.getExecutor()
    const query = compiled.get(adapter) ?? build(db, placeholders).compile()
    compiled.set(adapter, query)
    return query
  }

  return (db, parameters) => {
    const query = getCompiled(db)
    const values = new Map<string | symbol, unknown>(Object.entries(parameters))
    const bound = query.parameters.map(it => (it instanceof Placeholder ? values.get(it.name) : it))
    return db.executeQuery({ ...query, parameters: bound })
  }
}
