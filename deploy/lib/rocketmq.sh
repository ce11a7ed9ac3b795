# RocketMQ's name server and broker, from the jars that install.sh collected.
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables come from settings in deploy/stack

# Codes of the remoting protocol.
readonly code_create_topic=17 code_update_broker=25 code_route=105 code_cluster=106

# What RocketMQ reaches into by reflection, closed since JDK 17.
readonly java_opens=(
  --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED
  --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/jdk.internal.ref=ALL-UNNAMED
  --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED
)

# java_part PART HEAP [FLAGS...] CLASS ARGS... runs a RocketMQ main class with every path of it inside this stack's folder.
java_part() {
  local part=$1 heap=$2 home="$dir/$1"
  shift 2
  rm -rf "$home/tmp" # native libraries that a killed JVM left
  mkdir -p "$home/tmp"
  ROCKETMQ_HOME=$home NAMESRV_ADDR=127.0.0.1:$namesrv_port spawn "$part" java "-Xms$heap" "-Xmx$heap" \
    -XX:-UsePerfData "-XX:ErrorFile=$dir/log/$part-crash.log" -Xlog:disable -Xlog:all=error:stderr \
    "${java_opens[@]}" "-Duser.home=$home" "-Djava.io.tmpdir=$home/tmp" \
    "-Drmq.logback.configurationFile=$here/rocketmq/logback.xml" \
    -Dtls.server.mode=disabled -Drocketmq.broker.diskSpaceWarningLevelRatio=0.98 -Drocketmq.broker.diskSpaceCleanForciblyRatio=0.97 \
    -cp "$rocketmq_home/lib/*" "$@"
}

namesrv_launch() {
  mkdir -p "$dir/namesrv"
  cat >"$dir/namesrv/namesrv.conf" <<TEXT
bindAddress=127.0.0.1
listenPort=$namesrv_port
TEXT
  java_part namesrv 128m org.apache.rocketmq.namesrv.NamesrvStartup -c "$dir/namesrv/namesrv.conf"
}

namesrv_answers() { remoting "$namesrv_port" "$code_cluster" '{}' | succeeded; }

broker_launch() {
  mkdir -p "$dir/broker"
  broker_conf >"$dir/broker/broker.conf"
  local archive=-XX:+RecordDynamicDumpInfo
  if [[ -s $rocketmq_home/broker.jsa ]]; then archive=-XX:SharedArchiveFile=$rocketmq_home/broker.jsa; fi
  java_part broker 512m "$archive" org.apache.rocketmq.broker.BrokerStartup -c "$dir/broker/broker.conf"
}

broker_flush_type() { if [[ $flush == always ]]; then echo SYNC_FLUSH; else echo ASYNC_FLUSH; fi; }

# broker_flushes_so says whether the running broker was started with the flush mode that is wanted now.
broker_flushes_so() { grep -q "^flushDiskType=$(broker_flush_type)\$" "$dir/broker/broker.conf"; }

# broker_remember_classes keeps the classes of a running broker, parsed, for every later start: 1.3 s instead of 2.2 s.
# Another JVM's file is not used, and a failure to write one costs time and nothing else.
broker_remember_classes() {
  local new="$rocketmq_home/broker.jsa.$$"
  if [[ -s $rocketmq_home/broker.jsa ]] || ! has jcmd; then return 0; fi
  timeout 60 jcmd "$(pid_of broker)" VM.cds dynamic_dump "$new" >/dev/null 2>&1 || true
  if [[ -s $new ]]; then mv "$new" "$rocketmq_home/broker.jsa"; fi
}

broker_conf() {
  cat <<TEXT
brokerClusterName=floodgate
brokerName=floodgate
brokerId=0
brokerRole=ASYNC_MASTER
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
bindAddress=127.0.0.1
listenPort=$broker_port
haListenPort=$broker_ha_port
namesrvAddr=127.0.0.1:$namesrv_port
registerNameServerPeriod=10000
storePathRootDir=$dir/broker/store
storePathCommitLog=$dir/broker/store/commitlog
flushDiskType=$(broker_flush_type)
flushIntervalCommitLog=1000
mappedFileSizeCommitLog=268435456
autoCreateTopicEnable=false
traceTopicEnable=false
timerWheelEnable=true
reviveQueueNum=1
maxTransferCountOnMessageInMemory=1024
maxTransferBytesOnMessageInMemory=1048576
maxTransferCountOnMessageInDisk=1024
maxTransferBytesOnMessageInDisk=1048576
diskMaxUsedSpaceRatio=95
TEXT
}

# broker_answers makes the topics, which changes nothing where they are, and asks the name server for the way there.
# A broker that was killed and came back may be unknown there for 10 s (its death is noted after its return): it is told
# to register again.
broker_answers() {
  local topic
  for topic in "${topics[@]}"; do broker_topic "${topic%:*}" "${topic#*:}" || return 1; done
  for topic in "${topics[@]}"; do
    if ! broker_known "${topic%:*}"; then broker_register; fi
    broker_known "${topic%:*}" || return 1
  done
}

broker_known() { remoting "$namesrv_port" "$code_route" "{\"topic\":\"$1\"}" | grep -aq "127.0.0.1:$broker_port"; }

broker_topic() {
  remoting "$broker_port" "$code_create_topic" "{\"topic\":\"$1\",\"defaultTopic\":\"TBW102\",\"readQueueNums\":\"$2\",
    \"writeQueueNums\":\"$2\",\"perm\":\"6\",\"topicFilterType\":\"SINGLE_TAG\",\"topicSysFlag\":\"0\",\"order\":\"false\"}" | succeeded
}

# broker_register makes the broker tell a restarted name server at once what it has, instead of in its next 10 s:
# it does so whenever its permission is set.
broker_register() { remoting "$broker_port" "$code_update_broker" '{}' 'brokerPermission=6' >/dev/null; }

mqadmin() {
  rocketmq_fetch
  ROCKETMQ_HOME=$dir NAMESRV_ADDR=127.0.0.1:$namesrv_port exec java "${java_opens[@]}" "-Duser.home=$dir" \
    "-Drmq.logback.configurationFile=$here/rocketmq/logback.xml" \
    -cp "$rocketmq_home/lib/*" org.apache.rocketmq.tools.command.MQAdminStartup "$@"
}
