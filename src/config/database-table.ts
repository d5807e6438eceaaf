import { defineFixed, open } from './setting-row.ts'
import * as types from './setting-types.ts'

/** The settings of the database, which all servers share. */
export const databaseTable = {
  databaseUrl: open({
    name: 'smart.server.database-url',
    env: 'SMART_DATABASE_URL',
    type: types.databaseUrl,
    otherwise: '`sqlite:<data folder>/sallyport.db`',
    about: 'Database of clinicians, clients, keys, tokens, sessions and audit records.',
    of: settings => settings.databaseUrl,
  }),
  databasePoolSize: defineFixed({
    name: 'smart.server.database-pool-size',
    env: 'SMART_DATABASE_POOL_SIZE',
    type: types.wholeNumber(1, 1000),
    initial: '10',
    about:
      'PostgreSQL: maximum number of connections of each process. One more connection tests whether the database accepts writes.',
    of: settings => settings.database.poolSize,
  }),
  databaseConnectTimeoutSeconds: defineFixed({
    name: 'smart.server.database-connect-timeout-seconds',
    env: 'SMART_DATABASE_CONNECT_TIMEOUT_SECONDS',
    type: types.wholeNumber(1, 60),
    initial: '5',
    about: 'PostgreSQL: how long a request waits for a new or free connection before it gets 503.',
    of: settings => settings.database.connectTimeoutSeconds,
  }),
  databaseStatementTimeoutSeconds: defineFixed({
    name: 'smart.server.database-statement-timeout-seconds',
    env: 'SMART_DATABASE_STATEMENT_TIMEOUT_SECONDS',
    type: types.wholeNumber(1, 300),
    initial: '15',
    about: 'PostgreSQL: how long a statement may take before its request gets 503.',
    of: settings => settings.database.statementTimeoutSeconds,
  }),
}
