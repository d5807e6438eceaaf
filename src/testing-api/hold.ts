/**
 * The command of `start --run` for tests: prints its environment when the servers are ready, and ends with its standard input, which
 * ends with the test run, however that ends.
 */
const { AUTH_URL, FHIR_URL, APP_URL, FREE_PORT, TEST_USERS, SMART_CONFIG } = process.env
const servers = { AUTH_URL, FHIR_URL, APP_URL, FREE_PORT, TEST_USERS, SMART_CONFIG }
process.stdout.write(`${JSON.stringify(servers)}\n`)
process.stdin.resume()
